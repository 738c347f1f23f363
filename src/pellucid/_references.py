"""The sources that methods and metrics cite, by key."""

from __future__ import annotations

REFERENCES: dict[str, str] = {
    "abnar2020quantifying": "S. Abnar, W. Zuidema. Quantifying Attention Flow in Transformers. "
    "ACL 2020. arXiv:2005.00928",
    "benfenati2024unveiling": "A. Benfenati, A. Ferrara, A. Marta, D. Riva, E. Rocchetti. "
    "Unveiling Transformer Perception by Exploring Input Manifolds. 2024. arXiv:2410.06019",
    "denil2014extraction": "M. Denil, A. Demiraj, N. de Freitas. Extraction of Salient Sentences "
    "from Labelled Documents. 2014. arXiv:1412.6815",
    "leemann2024attention": "T. Leemann et al. Attention Mechanisms Don't Learn Additive Models: "
    "Rethinking Feature Importance for Transformers. TMLR, December 2024. arXiv:2405.13536",
    "petsiuk2018rise": "V. Petsiuk, A. Das, K. Saenko. RISE: Randomized Input Sampling for "
    "Explanation of Black-box Models. BMVC 2018. arXiv:1806.07421",
    "shrikumar2016just": "A. Shrikumar, P. Greenside, A. Shcherbina, A. Kundaje. Not Just a Black "
    "Box: Learning Important Features Through Propagating Activation Differences. 2016. "
    "arXiv:1605.01713",
    "englebert2023tis": "A. Englebert et al. Explaining through Transformer Input Sampling. "
    "ICCV Workshops 2023",
}
