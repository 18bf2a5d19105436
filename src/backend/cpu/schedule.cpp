#include "backend/cpu/schedule.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/dropout_mask.h"
#include "core/error.h"
#include "core/hash.h"

namespace muster::cpu {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Type;
using graph::Value;

namespace {

/// An instruction before it has a place: operands are other micros. `level` counts the row reductions before it: its stage at the earliest.
struct Micro {
  Instruction what;
  int32_t level = 0;
  bool uniform = false;  // the same in every column
};

/// A store at the stage of `from`.
struct Sink {
  Store::To to = Store::To::argument;
  int32_t slot = 0, from = 0;
};

Access access_of(const Type& type, const Type& space) {
  if (type.rank() == 2) return Access::full;
  if (type.rank() == 0) return Access::scalar;
  return type.dims[0] == space.dims[0] ? Access::column : Access::row;
}

class Scheduler {
 public:
  explicit Scheduler(const Graph& body) : body_(body) {}

  RegionPlan run() {
    find_space();
    const std::vector<int32_t> leaves = body_.leaves(Op::input);
    for (size_t k = 0; k < leaves.size(); ++k) operand_of_[leaves[k]] = static_cast<int32_t>(k);
    for (int32_t n = 0; n < static_cast<int32_t>(body_.nodes.size()); ++n) expand(n);
    for (size_t o = 0; o < body_.outputs.size(); ++o) output(static_cast<int32_t>(o));
    make_stages();
    name();
    return std::move(plan_);
  }

 private:
  LoopNest& nest() { return plan_.nest; }

  void find_space() {
    for (const Node& node : body_.nodes) {
      if (node.op == Op::dot) {
        const auto made = made_operand(node);
        plan_.nest.tile = true, plan_.prologue = made.has_value();
        plan_.space = made ? body_.type(node.inputs[*made]) : node.types[0];
      }
      const Type& type = node.op == Op::reduce_sum || node.op == Op::reduce_max ? body_.type(node.inputs[0]) : node.types[0];
      if (!plan_.nest.tile && node.op != Op::input && type.rank() == 2) plan_.space = type;
    }
    if (plan_.space.rank() != 2 || !plan_.space.dims[1].fixed())
      throw Error(ErrorKind::unsupported, "[schedule] a region loops over [rows, width]; this one has no such value");
    nest().width = plan_.space.dims[1].offset;
  }

  // --- micros

  int32_t add(Micro m) {
    micros_.push_back(m);
    return static_cast<int32_t>(micros_.size()) - 1;
  }
  int32_t emit(Do what, int32_t a, int32_t b = -1, int32_t c = -1) {
    Micro m{{what, a, b, c, -1, 0}, 0, true};
    for (const int32_t operand : {a, b, c}) {
      if (operand < 0) continue;
      m.level = std::max(m.level, micros_[static_cast<size_t>(operand)].level);
      m.uniform = m.uniform && micros_[static_cast<size_t>(operand)].uniform;
    }
    return add(m);
  }
  int32_t constant(double value) { return add({{Do::constant, -1, -1, -1, -1, value}, 0, true}); }

  /// The sum or maximum of `v` over the columns.
  int32_t reduce(Store::To to, int32_t v) {
    const int32_t slot = nest().reductions++;
    sinks_.push_back({to, slot, v});
    return add({{Do::reduced, -1, -1, -1, slot, 0}, micros_[static_cast<size_t>(v)].level + 1, true});
  }
  int32_t argument(Argument a, RegionPlan::Bound bound) {
    nest().arguments.push_back(a);
    plan_.arguments.push_back(bound);
    return static_cast<int32_t>(nest().arguments.size()) - 1;
  }

  // --- nodes

  int32_t at(Value v) {
    const auto found = made_.find(v);
    if (found != made_.end()) return found->second;
    const Node& from = body_.at(v);
    MUSTER_ASSERT(from.op == Op::input);
    const Type& type = from.types[0];
    const Access access = access_of(type, plan_.space);
    const int32_t slot = argument({access, type.dtype, false}, {operand_of_.at(v.node), -1});
    return made_[v] = add({{Do::load, -1, -1, -1, slot, 0}, 0, access == Access::column || access == Access::scalar});
  }

  void set(int32_t n, int32_t micro, int32_t output = 0) { made_[{n, output}] = micro; }

  static std::optional<Do> unary_of(const Node& node) {
    switch (node.op) {
      case Op::neg: return Do::neg;
      case Op::exp: return Do::exp;
      case Op::log: return Do::log;
      case Op::sqrt: return Do::sqrt;
      case Op::rsqrt: return Do::rsqrt;
      case Op::tanh: return Do::tanh;
      case Op::erf: return Do::erf;
      case Op::gelu: return node.attrs.approximate ? Do::gelu_tanh : Do::gelu;
      default: return std::nullopt;
    }
  }
  static std::optional<Do> binary_of(const Node& node) {
    switch (node.op) {
      case Op::add: return Do::add;
      case Op::sub: return Do::sub;
      case Op::mul: return Do::mul;
      case Op::div: return Do::div;
      case Op::maximum: return Do::maximum;
      case Op::greater: return Do::greater;
      default: return std::nullopt;
    }
  }

  void expand(int32_t n) {
    const Node& node = body_.nodes[static_cast<size_t>(n)];
    const auto in = [&](size_t k) { return at(node.inputs[k]); };
    if (const auto what = unary_of(node)) return set(n, emit(*what, in(0)));
    if (const auto what = binary_of(node)) {
      const int32_t a = in(0), b = in(1);
      return set(n, emit(*what, a, b));
    }
    switch (node.op) {
      case Op::input: return;  // loaded where it is read
      case Op::constant: return set(n, constant(node.attrs.value));
      case Op::broadcast:
        if (body_.type(node.inputs[0]).rank() > 1) break;
        return set(n, in(0));
      case Op::convert:
        return set(
            n, node.types[0].dtype == DType::bf16 && body_.type(node.inputs[0]).dtype != DType::bf16 ? emit(Do::round_bf16, in(0)) : in(0));
      case Op::select: {
        const int32_t c = in(0), a = in(1), b = in(2);
        return set(n, emit(Do::select, c, a, b));
      }
      case Op::gelu_grad: {
        const int32_t x = in(0), ct = in(1);
        return set(n, emit(Do::mul, emit(node.attrs.approximate ? Do::gelu_tanh_slope : Do::gelu_slope, x), ct));
      }
      case Op::dropout: {
        const DropoutRate rate = dropout_rate(node.attrs.rate);
        const auto slot = static_cast<int32_t>(nest().masks.size());
        nest().masks.push_back({rate.threshold, rate.scale});
        plan_.streams.push_back(node.attrs.stream);
        return set(n, emit(Do::mul, in(0), add({{Do::dropout, -1, -1, -1, slot, 0}, 0, false})));
      }
      case Op::reduce_sum:
      case Op::reduce_max:
        if (node.attrs.axes == std::vector<int64_t>{1})
          return set(n, reduce(node.op == Op::reduce_sum ? Store::To::row_sum : Store::To::row_max, in(0)));
        if (node.op == Op::reduce_sum && node.attrs.axes == std::vector<int64_t>{0}) {
          over_rows_[{n, 0}] = in(0);
          return;
        }
        break;
      case Op::layer_norm: return layer_norm(n, node);
      case Op::layer_norm_grad: return layer_norm_grad(n, node);
      case Op::dot: {
        const auto made = made_operand(node);
        plan_.product = node.attrs;
        if (made != size_t{0}) plan_.left = operand_behind(node.inputs[0]);
        if (made != size_t{1}) plan_.right = operand_behind(node.inputs[1]);
        if (made) {
          sinks_.push_back({Store::To::argument, argument({Access::tile, DType::f32, true}, {}), in(*made)});
          return;  // the result is the product's own
        }
        return set(n, add({{Do::load, -1, -1, -1, argument({Access::tile, DType::f32, false}, {}), 0}, 0, false}));
      }
      default: break;
    }
    throw Error(ErrorKind::unsupported, "[schedule] no loop nest computes {}", info(node.op).name);
  }

  /// Which operand of a product the body makes, if any.
  std::optional<size_t> made_operand(const Node& dot) const {
    for (size_t k = 0; k < 2; ++k) {
      const Node& from = body_.at(dot.inputs[k]);
      if ((from.op == Op::convert ? body_.at(from.inputs[0]) : from).op != Op::input) return k;
    }
    return std::nullopt;
  }

  /// The region's operand that v is, but for its conversion to f32.
  int32_t operand_behind(Value v) const {
    const Node& node = body_.at(v);
    return operand_of_.at(node.op == Op::convert ? node.inputs[0].node : v.node);
  }

  /// Formulas: Ba, Kiros, Hinton 2016; biased variance as in PyTorch; as kernels.h has them.
  void layer_norm(int32_t n, const Node& node) {
    const int32_t x = at(node.inputs[0]), gamma = at(node.inputs[1]), beta = at(node.inputs[2]);
    const int32_t width = constant(static_cast<double>(nest().width));
    const int32_t mean = emit(Do::div, reduce(Store::To::row_sum, x), width);
    const int32_t d = emit(Do::sub, x, mean);
    const int32_t variance = emit(Do::div, reduce(Store::To::row_sum, emit(Do::mul, d, d)), width);
    const int32_t rstd = emit(Do::div, constant(1), emit(Do::sqrt, emit(Do::add, variance, constant(node.attrs.value))));
    set(n, emit(Do::add, emit(Do::mul, emit(Do::mul, d, rstd), gamma), beta));
    set(n, mean, 1), set(n, rstd, 2);
  }

  void layer_norm_grad(int32_t n, const Node& node) {
    const int32_t x = at(node.inputs[0]), gamma = at(node.inputs[1]), mean = at(node.inputs[2]), rstd = at(node.inputs[3]),
                  ct = at(node.inputs[4]);
    const int32_t width = constant(static_cast<double>(nest().width));
    const int32_t xhat = emit(Do::mul, emit(Do::sub, x, mean), rstd), g = emit(Do::mul, ct, gamma);
    const int32_t mean_g = emit(Do::div, reduce(Store::To::row_sum, g), width);
    const int32_t mean_gx = emit(Do::div, reduce(Store::To::row_sum, emit(Do::mul, g, xhat)), width);
    set(n, emit(Do::mul, rstd, emit(Do::sub, emit(Do::sub, g, mean_g), emit(Do::mul, xhat, mean_gx))));
    over_rows_[{n, 1}] = emit(Do::mul, ct, xhat);
    over_rows_[{n, 2}] = ct;
  }

  void output(int32_t o) {
    const Value v = body_.outputs[static_cast<size_t>(o)].value;
    const Type& type = body_.type(v);
    if (plan_.prologue && body_.at(v).op == Op::dot) return;
    if (const auto sum = over_rows_.find(v); sum != over_rows_.end()) {
      sinks_.push_back({Store::To::argument, argument({Access::column_sum, DType::f32, true}, {-1, o}), sum->second});
      return;
    }
    sinks_.push_back({Store::To::argument, argument({access_of(type, plan_.space), type.dtype, true}, {-1, o}), at(v)});
  }

  // --- stages

  /// Whether a later stage computes the micro again rather than keep a row of it: leaves, what is uniform, and short sums and products.
  bool cheap(int32_t m, int depth = 2) const {
    const Micro& micro = micros_[static_cast<size_t>(m)];
    if (micro.uniform) return true;
    switch (micro.what.what) {
      case Do::load: return nest_argument(micro).access != Access::tile;
      case Do::add:
      case Do::sub:
      case Do::mul: return depth > 0 && cheap(micro.what.a, depth - 1) && cheap(micro.what.b, depth - 1);
      default: return false;
    }
  }
  const Argument& nest_argument(const Micro& m) const { return plan_.nest.arguments[static_cast<size_t>(m.what.slot)]; }

  /// Micro `m` as an instruction of stage `s`.
  int32_t place(int32_t m, int32_t s) {
    const auto key = std::pair{s, m};
    if (const auto found = placed_.find(key); found != placed_.end()) return found->second;
    const Micro micro = micros_[static_cast<size_t>(m)];
    Instruction now = micro.what;
    if (micro.level < s && !cheap(m)) {
      now = {Do::buffer, -1, -1, -1, buffer_of(m), 0};
    } else {
      for (int32_t* operand : {&now.a, &now.b, &now.c})
        if (*operand >= 0) *operand = place(*operand, s);
    }
    std::vector<Instruction>& body = nest().stages[static_cast<size_t>(s)].body;
    body.push_back(now);
    return placed_[key] = static_cast<int32_t>(body.size()) - 1;
  }

  /// The row buffer that keeps micro m from its own stage on.
  int32_t buffer_of(int32_t m) {
    const auto [found, fresh] = buffers_.try_emplace(m, nest().buffers);
    if (fresh) {
      ++nest().buffers;
      const int32_t level = micros_[static_cast<size_t>(m)].level;
      const int32_t from = place(m, level);
      nest().stages[static_cast<size_t>(level)].stores.push_back({Store::To::buffer, found->second, from});
    }
    return found->second;
  }

  void make_stages() {
    int32_t last = 0;
    for (const Sink& sink : sinks_) last = std::max(last, level_of(sink));
    nest().stages.resize(static_cast<size_t>(last) + 1);
    for (const Sink& sink : sinks_) {
      const int32_t s = level_of(sink), from = place(sink.from, s);
      nest().stages[static_cast<size_t>(s)].stores.push_back({sink.to, sink.slot, from});
    }
  }
  int32_t level_of(const Sink& sink) const { return micros_[static_cast<size_t>(sink.from)].level; }

  // --- name

  /// Ops in the body, then a hash of everything that the code depends on: equal nests have equal names.
  void name() {
    std::string ops;
    for (const Node& node : body_.nodes) {
      if (node.op == Op::input || node.op == Op::constant || node.op == Op::broadcast || node.op == Op::convert) continue;
      if (ops.size() < 48) ops += std::string(info(node.op).name) + "_";
    }
    std::string all = fmt::format("{} {} {} {}", nest().tile, nest().width, nest().buffers, nest().reductions);
    for (const Argument& a : nest().arguments)
      all += fmt::format("|{} {} {}", static_cast<int>(a.access), static_cast<int>(a.dtype), a.output);
    for (const DropoutMask& m : nest().masks) all += fmt::format("|{} {}", m.threshold, m.scale);
    for (const Stage& stage : nest().stages) {
      for (const Instruction& i : stage.body)
        all += fmt::format(";{} {} {} {} {} {}", static_cast<int>(i.what), i.a, i.b, i.c, i.slot, i.value);
      for (const Store& s : stage.stores) all += fmt::format(">{} {} {}", static_cast<int>(s.to), s.slot, s.from);
    }
    nest().name = fmt::format("{}{:016x}", ops, fnv1a(all));
  }

  const Graph& body_;
  RegionPlan plan_;
  std::map<int32_t, int32_t> operand_of_;  // input node -> operand
  std::vector<Micro> micros_;
  std::map<Value, int32_t> made_;
  std::map<Value, int32_t> over_rows_;  // values that are sums over the rows -> what is summed
  std::vector<Sink> sinks_;
  std::map<std::pair<int32_t, int32_t>, int32_t> placed_;  // (stage, micro) -> instruction
  std::map<int32_t, int32_t> buffers_;
};

}  // namespace

RegionPlan schedule(const Graph& body) { return Scheduler(body).run(); }

std::vector<LoopNest> loop_nests(const Graph& graph) {
  std::map<std::string, LoopNest> nests;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::region) continue;
    LoopNest nest = schedule(*node.attrs.body).nest;
    nests.try_emplace(nest.name, std::move(nest));
  }
  std::vector<LoopNest> in_order;
  for (auto& [name, nest] : nests) in_order.push_back(std::move(nest));
  return in_order;
}

}  // namespace muster::cpu
