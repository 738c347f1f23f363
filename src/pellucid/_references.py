"""The sources that methods and metrics cite, by key."""

from __future__ import annotations

REFERENCES: dict[str, str] = {
    "abnar2020quantifying": "S. Abnar, W. Zuidema. Quantifying Attention Flow in Transformers. "
    "ACL 2020. arXiv:2005.00928",
    "benfenati2024unveiling": "A. Benfenati, A. Ferrara, A. Marta, D. Riva, E. Rocchetti. "
    "Unveiling Transformer Perception by Exploring Input Manifolds. 2024. arXiv:2410.06019",
    "denil2014extraction": "M. Denil, A. Demiraj, N. de Freitas. Extraction of Salient Sentences "
    "from Labelled Documents. 2014. arXiv:1412.6815",
    "hooker2019benchmark": "S. Hooker, D. Erhan, P.-J. Kindermans, B. Kim. A Benchmark for "
    "Interpretability Methods in Deep Neural Networks. NeurIPS 2019. arXiv:1806.10758",
    "leemann2024attention": "T. Leemann et al. Attention Mechanisms Don't Learn Additive Models: "
    "Rethinking Feature Importance for Transformers. TMLR, December 2024. arXiv:2405.13536",
    "li2016understanding": "J. Li, W. Monroe, D. Jurafsky. Understanding Neural Networks through "
    "Representation Erasure. 2016. arXiv:1612.08220",
    "petsiuk2018rise": "V. Petsiuk, A. Das, K. Saenko. RISE: Randomized Input Sampling for "
    "Explanation of Black-box Models. BMVC 2018. arXiv:1806.07421",
    "shrikumar2016just": "A. Shrikumar, P. Greenside, A. Shcherbina, A. Kundaje. Not Just a Black "
    "Box: Learning Important Features Through Propagating Activation Differences. 2016. "
    "arXiv:1605.01713",
    "simonyan2014deep": "K. Simonyan, A. Vedaldi, A. Zisserman. Deep Inside Convolutional "
    "Networks: Visualising Image Classification Models and Saliency Maps. ICLR Workshops 2014. "
    "arXiv:1312.6034",
    "smilkov2017smoothgrad": "D. Smilkov, N. Thorat, B. Kim, F. Viégas, M. Wattenberg. SmoothGrad: "
    "removing noise by adding noise. 2017. arXiv:1706.03825",
    "sundararajan2017axiomatic": "M. Sundararajan, A. Taly, Q. Yan. Axiomatic Attribution for Deep "
    "Networks. ICML 2017. arXiv:1703.01365",
    "xie2022vitcx": "W. Xie, X.-H. Li, C. C. Cao, N. L. Zhang. ViT-CX: Causal Explanation of "
    "Vision Transformers. IJCAI 2023. arXiv:2211.03064",
    "zeiler2014visualizing": "M. D. Zeiler, R. Fergus. Visualizing and Understanding Convolutional "
    "Networks. ECCV 2014. arXiv:1311.2901",
    "englebert2023tis": "A. Englebert et al. Explaining through Transformer Input Sampling. "
    "ICCV Workshops 2023",
}
