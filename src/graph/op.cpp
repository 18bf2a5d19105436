#include "graph/op.h"

#include <array>

namespace muster::graph {
namespace {

using enum Op;
constexpr std::array<OpInfo, kOpCount> kTable{{
    {parameter, "parameter", 0, 0, 1, OpKind::leaf},
    {input, "input", 0, 0, 1, OpKind::leaf},
    {constant, "constant", 0, 0, 1, OpKind::leaf},
    {neg, "neg", 1, 1, 1, OpKind::elementwise},
    {exp, "exp", 1, 1, 1, OpKind::elementwise},
    {log, "log", 1, 1, 1, OpKind::elementwise},
    {sqrt, "sqrt", 1, 1, 1, OpKind::elementwise},
    {rsqrt, "rsqrt", 1, 1, 1, OpKind::elementwise},
    {tanh, "tanh", 1, 1, 1, OpKind::elementwise},
    {erf, "erf", 1, 1, 1, OpKind::elementwise},
    {gelu, "gelu", 1, 1, 1, OpKind::elementwise},
    {gelu_grad, "gelu_grad", 2, 2, 1, OpKind::elementwise},
    {convert, "convert", 1, 1, 1, OpKind::elementwise},
    {add, "add", 2, 2, 1, OpKind::elementwise},
    {sub, "sub", 2, 2, 1, OpKind::elementwise},
    {mul, "mul", 2, 2, 1, OpKind::elementwise},
    {div, "div", 2, 2, 1, OpKind::elementwise},
    {maximum, "maximum", 2, 2, 1, OpKind::elementwise},
    {greater, "greater", 2, 2, 1, OpKind::elementwise},
    {select, "select", 3, 3, 1, OpKind::elementwise},
    {dropout, "dropout", 1, 1, 1, OpKind::elementwise},
    {broadcast, "broadcast", 1, 1, 1, OpKind::shape},
    {reshape, "reshape", 1, 1, 1, OpKind::shape},
    {transpose, "transpose", 1, 1, 1, OpKind::shape},
    {slice, "slice", 1, 1, 1, OpKind::shape},
    {concat, "concat", 1, 64, 1, OpKind::shape},
    {reduce_sum, "reduce_sum", 1, 1, 1, OpKind::reduction},
    {reduce_max, "reduce_max", 1, 1, 1, OpKind::reduction},
    {dot, "dot", 2, 2, 1, OpKind::product},
    {gather, "gather", 2, 2, 1, OpKind::rows},
    {scatter_add, "scatter_add", 2, 2, 1, OpKind::rows},
    {layer_norm, "layer_norm", 3, 3, 3, OpKind::composite},
    {layer_norm_grad, "layer_norm_grad", 5, 5, 3, OpKind::composite},
    {attention, "attention", 2, 2, 2, OpKind::composite},
    {attention_grad, "attention_grad", 5, 5, 1, OpKind::composite},
    {softmax_cross_entropy, "softmax_cross_entropy", 2, 2, 2, OpKind::composite},
    {softmax_cross_entropy_grad, "softmax_cross_entropy_grad", 4, 4, 1, OpKind::composite},
    {adamw, "adamw", 5, 5, 3, OpKind::update},
    {lamb, "lamb", 5, 5, 3, OpKind::update},
    {region, "region", 0, 256, kAnyOutputs, OpKind::fused},
}};

constexpr bool complete() {
  for (int i = 0; i < kOpCount; ++i)
    if (static_cast<int>(kTable[static_cast<size_t>(i)].op) != i) return false;
  return true;
}
static_assert(complete(), "a row of the op table is missing or out of order");

}  // namespace

const OpInfo& info(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace muster::graph
