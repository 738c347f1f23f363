"""The sources that methods and metrics cite, by key."""

from __future__ import annotations

REFERENCES: dict[str, str] = {
    "abnar2020quantifying": "S. Abnar, W. Zuidema. Quantifying Attention Flow in Transformers. "
    "ACL 2020. arXiv:2005.00928",
    "achtibat2024attnlrp": "R. Achtibat et al. AttnLRP: Attention-Aware Layer-Wise Relevance "
    "Propagation for Transformers. ICML 2024. arXiv:2402.05602",
    "adebayo2018sanity": "J. Adebayo, J. Gilmer, M. Muelly, I. Goodfellow, M. Hardt, B. Kim. "
    "Sanity Checks for Saliency Maps. NeurIPS 2018. arXiv:1810.03292",
    "ali2022xai": "A. Ali et al. XAI for Transformers: Better Explanations through Conservative "
    "Propagation. ICML 2022. arXiv:2202.07304",
    "benfenati2024unveiling": "A. Benfenati, A. Ferrara, A. Marta, D. Riva, E. Rocchetti. "
    "Unveiling Transformer Perception by Exploring Input Manifolds. 2024. arXiv:2410.06019",
    "binder2016layer": "A. Binder et al. Layer-Wise Relevance Propagation for Neural Networks with "
    "Local Renormalization Layers. ICANN 2016. arXiv:1604.00825",
    "chalasani2020concise": "P. Chalasani, J. Chen, A. R. Chowdhury, S. Jha, X. Wu. Concise "
    "Explanations of Neural Networks using Adversarial Training. ICML 2020. arXiv:1810.06583",
    "chefer2021generic": "H. Chefer, S. Gur, L. Wolf. Generic Attention-model Explainability for "
    "Interpreting Bi-Modal and Encoder-Decoder Transformers. ICCV 2021. arXiv:2103.15679",
    "chefer2021transformer": "H. Chefer, S. Gur, L. Wolf. Transformer Interpretability Beyond "
    "Attention Visualization. CVPR 2021. arXiv:2012.09838",
    "chen2022beyond": "J. Chen, X. Li, L. Yu, D. Dou, H. Xiong. Beyond Intuition: Rethinking Token "
    "Attributions inside Transformers. TMLR 2022",
    "covert2021improving": "I. Covert, S.-I. Lee. Improving KernelSHAP: Practical Shapley Value "
    "Estimation via Linear Regression. AISTATS 2021. arXiv:2012.01536",
    "denil2014extraction": "M. Denil, A. Demiraj, N. de Freitas. Extraction of Salient Sentences "
    "from Labelled Documents. 2014. arXiv:1412.6815",
    "deyoung2020eraser": "J. DeYoung et al. ERASER: A Benchmark to Evaluate Rationalized NLP "
    "Models. ACL 2020. arXiv:1911.03429",
    "englebert2023tis": "A. Englebert et al. Explaining through Transformer Input Sampling. "
    "ICCV Workshops 2023",
    "hooker2019benchmark": "S. Hooker, D. Erhan, P.-J. Kindermans, B. Kim. A Benchmark for "
    "Interpretability Methods in Deep Neural Networks. NeurIPS 2019. arXiv:1806.10758",
    "jain2019attention": "S. Jain, B. C. Wallace. Attention is not Explanation. NAACL 2019. "
    "arXiv:1902.10186",
    "leemann2024attention": "T. Leemann et al. Attention Mechanisms Don't Learn Additive Models: "
    "Rethinking Feature Importance for Transformers. TMLR, December 2024. arXiv:2405.13536",
    "li2016understanding": "J. Li, W. Monroe, D. Jurafsky. Understanding Neural Networks through "
    "Representation Erasure. 2016. arXiv:1612.08220",
    "lundberg2017unified": "S. M. Lundberg, S.-I. Lee. A Unified Approach to Interpreting Model "
    "Predictions. NeurIPS 2017. arXiv:1705.07874",
    "mathew2021hatexplain": "B. Mathew et al. HateXplain: A Benchmark Dataset for Explainable Hate "
    "Speech Detection. AAAI 2021. arXiv:2012.10289",
    "montavon2017explaining": "G. Montavon et al. Explaining Nonlinear Classification Decisions "
    "with Deep Taylor Decomposition. Pattern Recognition 65, 2017. arXiv:1512.02479",
    "petsiuk2018rise": "V. Petsiuk, A. Das, K. Saenko. RISE: Randomized Input Sampling for "
    "Explanation of Black-box Models. BMVC 2018. arXiv:1806.07421",
    "qiang2022attcat": "Y. Qiang, D. Pan, C. Li, X. Li, R. Jang, D. Zhu. AttCAT: Explaining "
    "Transformers via Attentive Class Activation Tokens. NeurIPS 2022",
    "ribeiro2016why": 'M. T. Ribeiro, S. Singh, C. Guestrin. "Why Should I Trust You?": '
    "Explaining the Predictions of Any Classifier. KDD 2016. arXiv:1602.04938",
    "rong2022consistent": "Y. Rong, T. Leemann, V. Borisov, G. Kasneci, E. Kasneci. A Consistent "
    "and Efficient Evaluation Strategy for Attribution Methods. ICML 2022. arXiv:2202.00449",
    "samek2017evaluating": "W. Samek, A. Binder, G. Montavon, S. Lapuschkin, K.-R. Müller. "
    "Evaluating the Visualization of What a Deep Neural Network Has Learned. TNNLS 28, 2017. "
    "arXiv:1509.06321",
    "selvaraju2017gradcam": "R. R. Selvaraju et al. Grad-CAM: Visual Explanations from Deep "
    "Networks via Gradient-based Localization. ICCV 2017. arXiv:1610.02391",
    "sen2020human": "C. Sen, T. Hartvigsen, B. Yin, X. Kong, E. Rundensteiner. Human Attention "
    "Maps for Text Classification: Do Humans and Neural Networks Focus on the Same Words? ACL 2020",
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
    "voita2019analyzing": "E. Voita et al. Analyzing Multi-Head Self-Attention: Specialized Heads "
    "Do the Heavy Lifting, the Rest Can Be Pruned. ACL 2019. arXiv:1905.09418",
    "wang2020score": "H. Wang et al. Score-CAM: Score-Weighted Visual Explanations for "
    "Convolutional Neural Networks. CVPR Workshops 2020. arXiv:1910.01279",
    "wu2024token": "J. Wu, B. Duan, W. Kang, H. Tang, Y. Yan. Token Transformation Matters: "
    "Towards Faithful Post-hoc Explanation for Vision Transformer. CVPR 2024. arXiv:2403.14552",
    "xie2022vitcx": "W. Xie, X.-H. Li, C. C. Cao, N. L. Zhang. ViT-CX: Causal Explanation of "
    "Vision Transformers. IJCAI 2023. arXiv:2211.03064",
    "yeh2019infidelity": "C.-K. Yeh, C.-Y. Hsieh, A. Suggala, D. I. Inouye, P. Ravikumar. On the "
    "(In)fidelity and Sensitivity of Explanations. NeurIPS 2019. arXiv:1901.09392",
    "yuan2021explaining": "T. Yuan, X. Li, H. Xiong, H. Cao, D. Dou. Explaining Information Flow "
    "Inside Vision Transformers Using Markov Chain. NeurIPS Workshops 2021",
    "zeiler2014visualizing": "M. D. Zeiler, R. Fergus. Visualizing and Understanding Convolutional "
    "Networks. ECCV 2014. arXiv:1311.2901",
    "zhang2018top": "J. Zhang et al. Top-Down Neural Attention by Excitation Backprop. "
    "IJCV 126, 2018. arXiv:1608.00507",
}
