"""The table of all explanation methods: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Method
from pellucid.methods.attcat import attcat
from pellucid.methods.attention_flow import attention_flow
from pellucid.methods.attn_lrp import attn_lrp
from pellucid.methods.bt_h import bt_h
from pellucid.methods.bt_t import bt_t
from pellucid.methods.centre import centre
from pellucid.methods.conservative_lrp import conservative_lrp
from pellucid.methods.cp_lrp import cp_lrp
from pellucid.methods.grad_cam import grad_cam
from pellucid.methods.gradient import gradient
from pellucid.methods.gradient_x_input import gradient_x_input
from pellucid.methods.integrated_gradients import integrated_gradients
from pellucid.methods.kernel_shap import kernel_shap
from pellucid.methods.lime import lime
from pellucid.methods.lrp import lrp
from pellucid.methods.occlusion import occlusion
from pellucid.methods.partial_lrp import partial_lrp
from pellucid.methods.pullback import pullback
from pellucid.methods.random import random
from pellucid.methods.raw_attention import raw_attention
from pellucid.methods.rise import rise
from pellucid.methods.rollout import rollout
from pellucid.methods.slalom import slalom
from pellucid.methods.smoothgrad import smoothgrad
from pellucid.methods.tam import tam
from pellucid.methods.tis import tis
from pellucid.methods.transformer_attribution import transformer_attribution
from pellucid.methods.transformer_mm import transformer_mm
from pellucid.methods.uniform import uniform
from pellucid.methods.vit_cx import vit_cx
from pellucid.methods.vtranm import vtranm

METHODS: dict[str, Method] = {
    found.name: found
    for found in (
        gradient,
        gradient_x_input,
        integrated_gradients,
        smoothgrad,
        raw_attention,
        rollout,
        attention_flow,
        grad_cam,
        transformer_mm,
        attcat,
        vtranm,
        tam,
        bt_t,
        bt_h,
        pullback,
        lrp,
        partial_lrp,
        conservative_lrp,
        transformer_attribution,
        attn_lrp,
        cp_lrp,
        occlusion,
        slalom,
        rise,
        vit_cx,
        tis,
        lime,
        kernel_shap,
        random,
        uniform,
        centre,
    )
}
