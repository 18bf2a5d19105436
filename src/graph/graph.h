// The program of a model as values and operations: built once by Builder, rewritten by passes, run by a backend.
// Nodes stand in an order in which each comes after its inputs. No arithmetic, no kernels here.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"
#include "graph/op.h"

namespace muster::graph {

/// A size known only when a batch is there.
enum class Symbol : uint8_t {
  none,
  tokens,       // T: tokens of the batch, packed back to back
  sequences,    // B
  predictions,  // P: positions that have a loss
};
inline constexpr int kSymbolCount = 4;
/// Run-time values of the symbols, by enum value; [0] is 1.
using SymbolValues = std::array<int64_t, kSymbolCount>;

/// scale * symbol + offset; a fixed size is {none, 0, size}.
struct Dim {
  Symbol symbol = Symbol::none;
  int64_t scale = 0;
  int64_t offset = 0;

  Dim() = default;
  Dim(int64_t size) : offset(size) {}  // NOLINT: a plain number is a dimension
  Dim(Symbol s, int64_t scale_by = 1, int64_t plus = 0) : symbol(s), scale(scale_by), offset(plus) {}  // NOLINT

  [[nodiscard]] bool fixed() const { return symbol == Symbol::none; }
  [[nodiscard]] int64_t at(const SymbolValues& values) const { return scale * values[static_cast<size_t>(symbol)] + offset; }
  bool operator==(const Dim&) const = default;
};
inline const Dim kTokens{Symbol::tokens};
inline const Dim kSequences{Symbol::sequences};
inline const Dim kPredictions{Symbol::predictions};

struct Type {
  DType dtype = DType::f32;
  std::vector<Dim> dims;

  [[nodiscard]] size_t rank() const { return dims.size(); }
  [[nodiscard]] Shape shape(const SymbolValues& values) const;
  bool operator==(const Type&) const = default;
};
/// "f32[T, 384]", "i32[B+1]"
std::string to_string(const Type& type);

/// One output of a node.
struct Value {
  int32_t node = -1;
  int32_t output = 0;
  auto operator<=>(const Value&) const = default;
};

struct Graph;

/// What an op needs besides its inputs. Unused members keep their defaults (and are left out of dumps and hashes).
struct Attrs {
  std::vector<int64_t> axes;     // broadcast: where each operand axis goes; transpose: permutation; reduce: axes; slice, concat: [axis]
  int64_t start = 0, limit = 0;  // slice
  bool transpose_a = false, transpose_b = false;  // dot
  double value = 0;                               // constant; layer_norm: epsilon; softmax_cross_entropy: label smoothing
  double rate = 0;                                // dropout, attention: dropout rate
  uint32_t stream = 0;                            // of the random numbers of a dropout
  int32_t heads = 0;                              // attention
  bool approximate = false;                       // gelu: tanh form
  bool bf16 = false;                              // dot: operands are multiplied as bf16
  double beta1 = 0, beta2 = 0, weight_decay = 0;  // adamw, lamb (value: epsilon)
  int32_t parts = 1;                              // lamb: tensors stacked along the first axis, each with a ratio of its own
  std::shared_ptr<const Graph> body;              // region: inputs in the order of its operands, outputs in the order of its results
  bool operator==(const Attrs&) const = default;
};

struct Node {
  Op op = Op::constant;
  std::vector<Value> inputs;
  Attrs attrs;
  std::vector<Type> types;  // one per output
  std::string name;         // of a parameter or input; else empty
};

struct Output {
  std::string name;
  Value value;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Output> outputs;

  [[nodiscard]] const Node& at(Value v) const { return nodes[static_cast<size_t>(v.node)]; }
  [[nodiscard]] const Type& type(Value v) const { return at(v).types[static_cast<size_t>(v.output)]; }
  /// Nodes of one leaf kind, in order.
  [[nodiscard]] std::vector<int32_t> leaves(Op op) const;
  [[nodiscard]] std::optional<Value> find(Op leaf, std::string_view name) const;
};

/// Text of the whole graph, one node a line: "%7 = dot(%3, %1) {transpose_b} : f32[T, 384]".
std::string to_string(const Graph& graph);

/// Equal for equal programs: op, inputs, attributes, types and names of leaves and outputs.
uint64_t hash(const Graph& graph);

/// Checks order, arities, types against inference, names unique. Throws Error(internal) that names the node.
void verify(const Graph& graph);

}  // namespace muster::graph
