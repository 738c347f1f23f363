"""The sources that methods and metrics cite, by key."""

from __future__ import annotations

REFERENCES: dict[str, str] = {
    "abnar2020quantifying": "S. Abnar, W. Zuidema. Quantifying Attention Flow in Transformers. "
    "ACL 2020. arXiv:2005.00928",
    "achtibat2024attnlrp": "R. Achtibat et al. AttnLRP: Attention-Aware Layer-Wise Relevance "
    "Propagation for Transformers. ICML 2024. arXiv:2402.05602",
    "ali2022xai": "A. Ali et al. XAI for Transformers: Better Explanations through Conservative "
    "Propagation. ICML 2022. arXiv:2202.07304",
    "benfenati2024unveiling": "A. Benfenati, A. Ferrara, A. Marta, D. Riva, E. Rocchetti. "
    "Unveiling Transformer Perception by Exploring Input Manifolds. 2024. arXiv:2410.06019",
    "binder2016layer": "A. Binder et al. Layer-Wise Relevance Propagation for Neural Networks with "
    "Local Renormalization Layers. ICANN 2016. arXiv:1604.00825",
    "chefer2021generic": "H. Chefer, S. Gur, L. Wolf. Generic Attention-model Explainability for "
    "Interpreting Bi-Modal and Encoder-Decoder Transformers. ICCV 2021. arXiv:2103.15679",
    "chefer2021transformer": "H. Chefer, S. Gur, L. Wolf. Transformer Interpretability Beyond "
    "Attention Visualization. CVPR 2021. arXiv:2012.09838",
    "chen2022beyond": "J. Chen, X. Li, L. Yu, D. Dou, H. Xiong. Beyond Intuition: Rethinking Token "
    "Attributions inside Transformers. TMLR 2022",
    "denil2014extraction": "M. Denil, A. Demiraj, N. de Freitas. Extraction of Salient Sentences "
    "from Labelled Documents. 2014. arXiv:1412.6815",
    "jain2019attention": "S. Jain, B. C. Wallace. Attention is not Explanation. NAACL 2019. "
    "arXiv:1902.10186",
    "leemann2024attention": "T. Leemann et al. Attention Mechanisms Don't Learn Additive Models: "
    "Rethinking Feature Importance for Transformers. TMLR, December 2024. arXiv:2405.13536",
    "montavon2017explaining": "G. Montavon et al. Explaining Nonlinear Classification Decisions "
    "with Deep Taylor Decomposition. Pattern Recognition 65, 2017. arXiv:1512.02479",
    "petsiuk2018rise": "V. Petsiuk, A. Das, K. Saenko. RISE: Randomized Input Sampling for "
    "Explanation of Black-box Models. BMVC 2018. arXiv:1806.07421",
    "qiang2022attcat": "Y. Qiang, D. Pan, C. Li, X. Li, R. Jang, D. Zhu. AttCAT: Explaining "
    "Transformers via Attentive Class Activation Tokens. NeurIPS 2022",
    "selvaraju2017gradcam": "R. R. Selvaraju et al. Grad-CAM: Visual Explanations from Deep "
    "Networks via Gradient-based Localization. ICCV 2017. arXiv:1610.02391",
    "shrikumar2016just": "A. Shrikumar, P. Greenside, A. Shcherbina, A. Kundaje. Not Just a Black "
    "Box: Learning Important Features Through Propagating Activation Differences. 2016. "
    "arXiv:1605.01713",
    "voita2019analyzing": "E. Voita et al. Analyzing Multi-Head Self-Attention: Specialized Heads "
    "Do the Heavy Lifting, the Rest Can Be Pruned. ACL 2019. arXiv:1905.09418",
    "englebert2023tis": "A. Englebert et al. Explaining through Transformer Input Sampling. "
    "ICCV Workshops 2023",
    "wu2024token": "J. Wu, B. Duan, W. Kang, H. Tang, Y. Yan. Token Transformation Matters: "
    "Towards Faithful Post-hoc Explanation for Vision Transformer. CVPR 2024. arXiv:2403.14552",
    "yuan2021explaining": "T. Yuan, X. Li, H. Xiong, H. Cao, D. Dou. Explaining Information Flow "
    "Inside Vision Transformers Using Markov Chain. NeurIPS Workshops 2021",
}
