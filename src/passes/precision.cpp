#include <algorithm>
#include <map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace muster::passes {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Symbol;
using graph::Type;
using graph::Value;

namespace {

/// Activations: one row per token or predicted position.
bool per_token(const Type& t) {
  return is_float(t.dtype) && t.rank() == 2 && (t.dims[0].symbol == Symbol::tokens || t.dims[0].symbol == Symbol::predictions);
}

bool is_output(const Graph& body, Value v) {
  return std::any_of(body.outputs.begin(), body.outputs.end(), [&](const graph::Output& o) { return o.value == v; });
}

/// Whether a layer norm reads v. It is rounded even where nobody stores it, so that inference gives the bits of training without dropout.
bool is_normalised(const Graph& body, Value v) {
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& n) { return n.op == Op::layer_norm && n.inputs[0] == v; });
}

class Bf16 {
 public:
  explicit Bf16(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph run() {
    for (int32_t n = 0; n < static_cast<int32_t>(graph_.nodes.size()); ++n) write(n);
    // Outputs keep their types: what became bf16 is widened last.
    std::vector<Value> widened;
    for (const graph::Output& o : graph_.outputs) widened.push_back(as(rewriter_.at(o.value), graph_.type(o.value).dtype));
    Graph result = rewriter_.finish();
    for (size_t i = 0; i < widened.size(); ++i) result.outputs[i].value = widened[i];
    return result;
  }

 private:
  const Type& now(Value v) { return rewriter_.builder().type(v); }

  /// v in the wanted dtype; each conversion is written once.
  Value as(Value v, DType dtype) {
    if (now(v).dtype == dtype) return v;
    const auto [place, fresh] = converted_.try_emplace({v, dtype});
    if (fresh) place->second = rewriter_.builder().convert(v, dtype);
    return place->second;
  }

  void keep(int32_t n, const std::vector<Value>& inputs) { place(n, rewriter_.emit_like(n, inputs)); }

  void place(int32_t n, Value v) {
    for (size_t k = 0; k < graph_.nodes[static_cast<size_t>(n)].types.size(); ++k)
      rewriter_.set({n, static_cast<int32_t>(k)}, {v.node, static_cast<int32_t>(k)});
  }

  void write(int32_t n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    std::vector<Value> in;
    for (const Value v : node.inputs) in.push_back(rewriter_.at(v));
    Attrs attrs = node.attrs;
    switch (node.op) {
      case Op::dot:
        if (!per_token(now(in[0])) && !per_token(now(in[1]))) break;
        for (Value& v : in)
          if (per_token(now(v))) v = as(v, DType::bf16);
        attrs.bf16 = true;
        return place(n, rewriter_.builder().emit(node.op, in, attrs));
      case Op::region: return place(n, region(node, in));
      case Op::layer_norm_grad: in[4] = as(in[4], now(in[0]).dtype); break;
      case Op::gelu_grad: in[1] = as(in[1], now(in[0]).dtype); break;
      case Op::attention_grad: in[2] = as(in[2], now(in[0]).dtype), in[4] = as(in[4], now(in[0]).dtype); break;
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::maximum:
      case Op::select:
      case Op::greater:
      case Op::concat: {
        bool narrow = false;
        for (const Value v : in) narrow = narrow || now(v).dtype == DType::bf16;
        if (!narrow) break;
        for (Value& v : in)
          if (is_float(now(v).dtype)) v = as(v, DType::bf16);
        break;
      }
      case Op::reduce_sum:
      case Op::reduce_max:  // f32 from here on
        return place(n, as(rewriter_.builder().emit(node.op, in, attrs, node.types[0]), DType::f32));
      case Op::gather: {
        const Value rows = rewriter_.builder().emit(node.op, in, attrs, node.types[0]);
        return place(n, per_token(node.types[0]) ? rows : as(rows, DType::f32));
      }
      case Op::scatter_add: in[0] = as(in[0], DType::f32); break;
      case Op::broadcast:
      case Op::reshape: {
        Type declared = node.types[0];
        declared.dtype = now(in[0]).dtype;
        return place(n, rewriter_.builder().emit(node.op, in, attrs, declared));
      }
      default: break;
    }
    keep(n, in);
  }

  /// A region computes in f32 whatever it reads. What it makes for tokens is stored as bf16, and everything behind sees the stored value,
  /// inside the region too. A product in it takes bf16 operands.
  Value region(const Node& node, std::vector<Value> in) {
    const Graph& body = *node.attrs.body;
    const std::vector<int32_t> leaves = body.leaves(Op::input);
    const auto narrow = [&](const Node& dot) { return per_token(body.type(dot.inputs[0])) || per_token(body.type(dot.inputs[1])); };
    for (const Node& inner : body.nodes)
      if (inner.op == Op::dot && narrow(inner))
        for (size_t k = 0; k < leaves.size(); ++k)
          for (const Value v : inner.inputs)
            if (v.node == leaves[k] && per_token(body.type(v))) in[k] = as(in[k], DType::bf16);

    auto now_body = std::make_shared<Graph>();
    graph::Builder b(*now_body);
    std::map<Value, Value> became;
    size_t next = 0;
    for (int32_t n = 0; n < static_cast<int32_t>(body.nodes.size()); ++n) {
      const Node& inner = body.nodes[static_cast<size_t>(n)];
      if (inner.op == Op::input) {
        const Type& type = now(in[next]);
        const Value v = b.input(std::to_string(next++), type.dtype, type.dims);
        became[{n, 0}] = is_float(type.dtype) ? b.convert(v, DType::f32) : v;
        continue;
      }
      std::vector<Value> operands;
      for (const Value v : inner.inputs) operands.push_back(became.at(v));
      Attrs attrs = inner.attrs;
      attrs.bf16 = inner.op == Op::dot && narrow(inner);
      const Value v = b.emit(inner.op, std::move(operands), std::move(attrs), inner.types[0]);
      for (int32_t o = 0; o < static_cast<int32_t>(inner.types.size()); ++o) {
        const bool stored = per_token(inner.types[static_cast<size_t>(o)]) && (is_output(body, {n, o}) || is_normalised(body, {n, o}));
        const Value made{v.node, o};
        became[{n, o}] = stored ? b.convert(b.convert(made, DType::bf16), DType::f32) : made;
      }
    }
    for (const graph::Output& o : body.outputs) {
      const Value v = became.at(o.value);
      b.output(o.name, per_token(body.type(o.value)) ? now_body->at(v).inputs[0] : v);  // the bf16 that v was read back from
    }
    Attrs attrs;
    attrs.body = std::move(now_body);
    return rewriter_.builder().emit(Op::region, std::move(in), std::move(attrs));
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<std::pair<Value, DType>, Value> converted_;
};

}  // namespace

Graph to_bf16(const Graph& graph) { return simplify(Bf16(graph).run()); }

}  // namespace muster::passes
