// The evaluator: a graph's nodes in order, each by one loop of ops.h, and the Backend around it. No arithmetic of an op here.
#include "backend/ref/ref.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "backend/ref/ops.h"

namespace muster::ref {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::SymbolValues;

namespace {

void region(Call& call);

void compute(Call& call) {
  // clang-format off: a table of ops
  switch (call.node.op) {
    case Op::parameter: case Op::input: return;  // evaluate_nodes has filled them
    case Op::constant:
      for (double& v : call.out().values) v = call.node.attrs.value;
      return;
    case Op::neg: return unary(call, [](double x) { return -x; });
    case Op::exp: return unary(call, [](double x) { return std::exp(x); });
    case Op::log: return unary(call, [](double x) { return std::log(x); });
    case Op::sqrt: return unary(call, [](double x) { return std::sqrt(x); });
    case Op::rsqrt: return unary(call, [](double x) { return 1 / std::sqrt(x); });
    case Op::tanh: return unary(call, [](double x) { return std::tanh(x); });
    case Op::erf: return unary(call, [](double x) { return std::erf(x); });
    case Op::gelu: return gelu(call);
    case Op::gelu_grad: return gelu_grad(call);
    case Op::convert: return convert(call);
    case Op::add: return binary(call, [](double a, double b) { return a + b; });
    case Op::sub: return binary(call, [](double a, double b) { return a - b; });
    case Op::mul: return binary(call, [](double a, double b) { return a * b; });
    case Op::div: return binary(call, [](double a, double b) { return a / b; });
    case Op::maximum: return binary(call, [](double a, double b) { return std::isnan(a) || a > b ? a : b; });  // keeps NaN
    case Op::greater: return binary(call, [](double a, double b) { return a > b ? 1.0 : 0.0; });
    case Op::select: return select(call);
    case Op::dropout: return dropout(call);
    case Op::broadcast: return broadcast(call);
    case Op::reshape: call.out().values = call.in(0).values; return;
    case Op::transpose: return transpose(call);
    case Op::slice: return slice(call);
    case Op::concat: return concat(call);
    case Op::reduce_sum: return reduce_sum(call);
    case Op::reduce_max: return reduce_max(call);
    case Op::dot: return dot(call);
    case Op::gather: return gather(call);
    case Op::scatter_add: return scatter_add(call);
    case Op::layer_norm: return layer_norm(call);
    case Op::layer_norm_grad: return layer_norm_grad(call);
    case Op::attention: return attention(call);
    case Op::attention_grad: return attention_grad(call);
    case Op::softmax_cross_entropy: return softmax_cross_entropy(call);
    case Op::softmax_cross_entropy_grad: return softmax_cross_entropy_grad(call);
    case Op::adamw: return adamw(call);
    case Op::lamb: return lamb(call);
    case Op::region: return region(call);
  }
  // clang-format on
}

/// Evaluates all nodes in order. `leaf` fills the elements of a parameter or an input; `done` sees each node's finished outputs.
void evaluate_nodes(const Graph& graph, const SymbolValues& symbols, uint64_t seed, const std::function<void(size_t node, Array&)>& leaf,
                    const std::function<void(size_t node, const std::vector<Array>&)>& done) {
  std::vector<std::vector<Array>> values(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    Call call{node, {}, {}, seed, symbols};
    for (const graph::Value v : node.inputs) call.inputs.push_back(&values[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]);
    for (const graph::Type& type : node.types) {
      Array a{type.dtype, type.shape(symbols), {}};
      a.values.assign(static_cast<size_t>(element_count(a.shape)), 0.0);
      call.outputs.push_back(std::move(a));
    }
    if (node.op == Op::parameter || node.op == Op::input) leaf(n, call.out());
    compute(call);
    for (Array& a : call.outputs)
      for (double& v : a.values) v = rounded(v, a.dtype);
    values[n] = std::move(call.outputs);
    done(n, values[n]);
  }
}

/// The body, on the operands as its inputs.
void region(Call& call) {
  const Graph& body = *call.node.attrs.body;
  size_t next = 0;
  const auto leaf = [&](size_t, Array& into) { into.values = call.in(next++).values; };
  const auto done = [&](size_t n, const std::vector<Array>& values) {
    for (size_t o = 0; o < body.outputs.size(); ++o)
      if (body.outputs[o].value.node == static_cast<int32_t>(n))
        call.out(o).values = values[static_cast<size_t>(body.outputs[o].value.output)].values;
  };
  evaluate_nodes(body, call.symbols, call.seed, leaf, done);
}

/// Calls visit(i, element): the element as its type, for reading or writing.
template <typename Visit>
void for_each_element(const TensorView& t, Visit&& visit) {
  const auto all = [&](auto* data) {
    for (int64_t i = 0, n = t.elements(); i < n; ++i) visit(i, data[i]);
  };
  switch (t.dtype) {
    case DType::f32: return all(static_cast<float*>(t.data));
    case DType::f64: return all(static_cast<double*>(t.data));
    case DType::bf16: return all(static_cast<BF16*>(t.data));
    case DType::f16: return all(static_cast<F16*>(t.data));
    case DType::i32: return all(static_cast<int32_t*>(t.data));
    case DType::i64: return all(static_cast<int64_t*>(t.data));
    case DType::u8:
    case DType::boolean: return all(static_cast<uint8_t*>(t.data));
  }
}

double from_element(BF16 e) { return to_f32(e); }
double from_element(F16 e) { return to_f32(e); }
template <typename T>
double from_element(T e) {
  return static_cast<double>(e);
}
void to_element(double v, BF16& e) { e = to_bf16(static_cast<float>(v)); }
void to_element(double v, F16& e) { e = to_f16(static_cast<float>(v)); }
template <typename T>
void to_element(double v, T& e) {
  e = static_cast<T>(v);
}

/// Gradient accumulation adds to what has a parameter's shape.
bool accumulates(const graph::Type& type) {
  for (const graph::Dim& d : type.dims)
    if (!d.fixed()) return false;
  return type.rank() >= 1;
}

class RefExecutable final : public backend::Executable {
 public:
  explicit RefExecutable(Graph graph) : graph_(std::move(graph)), signature_(backend::signature_of(graph_)) {
    size_t parameters = 0, inputs = 0;
    for (const Node& node : graph_.nodes) slots_.push_back(node.op == Op::parameter ? parameters++ : node.op == Op::input ? inputs++ : 0);
  }

  [[nodiscard]] const backend::Signature& signature() const override { return signature_; }
  [[nodiscard]] const Graph& graph() const override { return graph_; }
  void record(std::vector<backend::StepTime>*) override {}  // its times say nothing

  void run(const backend::Bindings& io, const backend::OnOutput& on_output) override {
    const SymbolValues symbols = backend::solve_symbols(signature_, io);
    const auto leaf = [&](size_t n, Array& into) {
      const TensorView& from = (graph_.nodes[n].op == Op::parameter ? io.parameters : io.inputs)[slots_[n]];
      for_each_element(from, [&](int64_t i, const auto& e) { into[i] = from_element(e); });
    };
    const auto done = [&](size_t n, const std::vector<Array>& values) {
      for (size_t o = 0; o < graph_.outputs.size(); ++o) {
        const graph::Value v = graph_.outputs[o].value;
        if (v.node != static_cast<int32_t>(n)) continue;
        const bool add = io.accumulate && accumulates(graph_.type(v));
        const Array& from = values[static_cast<size_t>(v.output)];
        for_each_element(io.outputs[o], [&](int64_t i, auto& e) { to_element(add ? from_element(e) + from[i] : from[i], e); });
        if (on_output) on_output(o);
      }
    };
    evaluate_nodes(graph_, symbols, io.seed, leaf, done);
  }

 private:
  Graph graph_;
  backend::Signature signature_;
  std::vector<size_t> slots_;  // of each node: which of the parameters or inputs it is
};

class RefBackend final : public backend::Backend {
 public:
  [[nodiscard]] std::unique_ptr<backend::Executable> compile(const Graph& graph, const backend::CompileOptions&) const override {
    graph::verify(graph);
    return std::make_unique<RefExecutable>(graph);
  }
};

}  // namespace

std::unique_ptr<backend::Backend> make_backend() { return std::make_unique<RefBackend>(); }

Values evaluate(const Graph& graph, const Values& leaves, const SymbolValues& symbols, uint64_t seed) {
  graph::verify(graph);
  Values outputs;
  const auto leaf = [&](size_t n, Array& into) {
    const std::string& name = graph.nodes[n].name;
    const auto found = leaves.find(name);
    if (found == leaves.end()) throw Error(ErrorKind::invalid_argument, "[evaluate] no values for '{}'", name);
    if (found->second.size() != into.values.size())
      throw Error(ErrorKind::invalid_argument, "[evaluate] '{}' has {} values, its shape is {}", name, found->second.size(),
                  to_string(into.shape));
    into.values = found->second;
  };
  const auto done = [&](size_t n, const std::vector<Array>& values) {
    for (const graph::Output& o : graph.outputs)
      if (o.value.node == static_cast<int32_t>(n)) outputs[o.name] = values[static_cast<size_t>(o.value.output)].values;
  };
  evaluate_nodes(graph, symbols, seed, leaf, done);
  return outputs;
}

}  // namespace muster::ref
