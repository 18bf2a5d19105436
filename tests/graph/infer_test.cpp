// Type inference: what each op makes of its operands' types, and what it refuses.
#include <gtest/gtest.h>

#include <set>

#include "graph/builder.h"

namespace muster::graph {
namespace {

const Dim kBorders{Symbol::sequences, 1, 1};

Type f32(std::vector<Dim> dims) { return {DType::f32, std::move(dims)}; }
Type bf16(std::vector<Dim> dims) { return {DType::bf16, std::move(dims)}; }
Type i32(std::vector<Dim> dims) { return {DType::i32, std::move(dims)}; }
Type boolean(std::vector<Dim> dims) { return {DType::boolean, std::move(dims)}; }

Attrs axes(std::vector<int64_t> a) {
  Attrs attrs;
  attrs.axes = std::move(a);
  return attrs;
}
Attrs range(int64_t axis, int64_t start, int64_t limit) {
  Attrs attrs = axes({axis});
  attrs.start = start, attrs.limit = limit;
  return attrs;
}
Attrs transposed(bool a, bool b) {
  Attrs attrs;
  attrs.transpose_a = a, attrs.transpose_b = b;
  return attrs;
}
Attrs heads(int32_t n) {
  Attrs attrs;
  attrs.heads = n;
  return attrs;
}

/// Types of the results, "f32[T, 4] f32[T]".
std::string text(const std::vector<Type>& types) {
  std::string t;
  for (const Type& type : types) t += (t.empty() ? "" : " ") + to_string(type);
  return t;
}

struct Row {
  Op op;
  std::vector<Type> in;
  Attrs attrs;
  Type declared;
  std::string results;
};

/// A body of two inputs: x by a row, and its sums over the rows.
Attrs scaled_rows() {
  auto body = std::make_shared<Graph>();
  Builder b(*body);
  const Value x = b.input("0", DType::f32, {kTokens, 4}), scale = b.input("1", DType::f32, {4});
  const Value y = b.mul(x, b.broadcast(scale, {kTokens, 4}, {1}));
  b.output("0", y);
  b.output("1", b.reduce_sum(y, {0}));
  Attrs attrs;
  attrs.body = std::move(body);
  return attrs;
}

TEST(Infer, GoodTypes) {
  const std::vector<Row> table{
      {Op::parameter, {}, {}, f32({3, 4}), "f32[3, 4]"},
      {Op::input, {}, {}, i32({kTokens}), "i32[T]"},
      {Op::input, {}, {}, i32({kBorders}), "i32[B+1]"},
      {Op::constant, {}, {}, bf16({kPredictions, 2}), "bf16[P, 2]"},
      {Op::neg, {bf16({kTokens, 4})}, {}, {}, "bf16[T, 4]"},
      {Op::gelu, {f32({})}, {}, {}, "f32[]"},
      {Op::gelu_grad, {f32({2}), f32({2})}, {}, {}, "f32[2]"},
      {Op::convert, {f32({kTokens})}, {}, bf16({kTokens}), "bf16[T]"},
      {Op::add, {f32({kTokens, 4}), f32({kTokens, 4})}, {}, {}, "f32[T, 4]"},
      {Op::greater, {i32({kTokens}), i32({kTokens})}, {}, {}, "bool[T]"},
      {Op::select, {boolean({2}), i32({2}), i32({2})}, {}, {}, "i32[2]"},
      {Op::dropout, {f32({kTokens, 4})}, {}, {}, "f32[T, 4]"},
      {Op::broadcast, {f32({4})}, axes({1}), f32({kTokens, 4}), "f32[T, 4]"},
      {Op::broadcast, {f32({})}, {}, f32({kTokens}), "f32[T]"},
      {Op::reshape, {f32({kTokens, 6})}, {}, f32({kTokens, 2, 3}), "f32[T, 2, 3]"},
      {Op::reshape, {f32({kTokens, 6})}, {}, f32({Dim{Symbol::tokens, 2}, 3}), "f32[2T, 3]"},
      {Op::transpose, {f32({kTokens, 2, 3})}, axes({2, 0, 1}), {}, "f32[3, T, 2]"},
      {Op::slice, {f32({kTokens, 6})}, range(1, 2, 5), {}, "f32[T, 3]"},
      {Op::concat, {f32({kTokens, 2}), f32({kTokens, 3})}, axes({1}), {}, "f32[T, 5]"},
      {Op::reduce_sum, {f32({kTokens, 2, 3})}, axes({0, 2}), {}, "f32[2]"},
      {Op::reduce_max, {f32({kTokens})}, axes({0}), {}, "f32[]"},
      {Op::reduce_sum, {bf16({kTokens, 2})}, axes({0}), {}, "f32[2]"},
      {Op::dot, {f32({kTokens, 4}), f32({4, 3})}, {}, {}, "f32[T, 3]"},
      {Op::dot, {f32({kTokens, 4}), f32({3, 4})}, transposed(false, true), {}, "f32[T, 3]"},
      {Op::dot, {f32({kTokens, 4}), f32({kTokens, 3})}, transposed(true, false), {}, "f32[4, 3]"},
      {Op::dot, {bf16({kTokens, 4}), f32({3, 4})}, transposed(false, true), {}, "bf16[T, 3]"},
      {Op::dot, {bf16({kTokens, 4}), bf16({kTokens, 3})}, transposed(true, false), {}, "f32[4, 3]"},
      {Op::gather, {f32({30, 4}), i32({kTokens})}, {}, {}, "f32[T, 4]"},
      {Op::scatter_add, {f32({kTokens, 4}), i32({kTokens})}, {}, f32({30, 4}), "f32[30, 4]"},
      {Op::layer_norm, {bf16({kTokens, 4}), f32({4}), f32({4})}, {}, {}, "bf16[T, 4] f32[T] f32[T]"},
      {Op::layer_norm_grad,
       {bf16({kTokens, 4}), f32({4}), f32({kTokens}), f32({kTokens}), bf16({kTokens, 4})},
       {},
       {},
       "bf16[T, 4] f32[4] f32[4]"},
      {Op::attention, {bf16({kTokens, 24}), i32({kBorders})}, heads(2), {}, "bf16[T, 8] f32[T, 2]"},
      {Op::attention_grad,
       {f32({kTokens, 24}), i32({kBorders}), f32({kTokens, 8}), f32({kTokens, 2}), f32({kTokens, 8})},
       heads(2),
       {},
       "f32[T, 24]"},
      {Op::softmax_cross_entropy, {f32({kSequences, 3}), i32({kSequences})}, {}, {}, "f32[B] f32[B]"},
      {Op::softmax_cross_entropy_grad,
       {f32({kSequences, 3}), i32({kSequences}), f32({kSequences}), f32({kSequences})},
       {},
       {},
       "f32[B, 3]"},
      {Op::adamw, {f32({3, 4}), f32({3, 4}), f32({3, 4}), f32({3, 4}), f32({4})}, {}, {}, "f32[3, 4] f32[3, 4] f32[3, 4]"},
      {Op::lamb, {f32({3, 4}), f32({3, 4}), f32({3, 4}), f32({3, 4}), f32({4})}, {}, {}, "f32[3, 4] f32[3, 4] f32[3, 4]"},
      {Op::region, {f32({kTokens, 4}), f32({4})}, scaled_rows(), {}, "f32[T, 4] f32[4]"},
  };
  std::set<OpKind> kinds;
  for (const Row& row : table) {
    SCOPED_TRACE(info(row.op).name);
    kinds.insert(info(row.op).kind);
    const std::vector<Type> got = infer(row.op, row.in, row.attrs, row.declared);
    EXPECT_EQ(text(got), row.results);
    if (info(row.op).outputs != kAnyOutputs) {
      EXPECT_EQ(static_cast<int>(got.size()), info(row.op).outputs);
    }
  }
  EXPECT_EQ(kinds.size(), 9u) << "a case of each kind of op";
}

TEST(Infer, BadTypes) {
  const std::vector<Row> table{
      {Op::parameter, {}, {}, f32({kTokens}), "[parameter] a parameter has fixed sizes; operands: "},
      {Op::neg, {}, {}, {}, "[neg] takes 1 to 1 operands; operands: "},
      {Op::exp, {i32({2})}, {}, {}, "[exp] operand 0 must be of a float type; operands: i32[2]"},
      {Op::add, {f32({2}), f32({3})}, {}, {}, "[add] operands 0 and 1 must have one type; operands: f32[2], f32[3]"},
      {Op::add, {f32({2}), bf16({2})}, {}, {}, "[add] operands 0 and 1 must have one type; operands: f32[2], bf16[2]"},
      {Op::add, {f32({kTokens}), f32({kSequences})}, {}, {}, "[add] operands 0 and 1 must have one type; operands: f32[T], f32[B]"},
      {Op::convert, {f32({2})}, {}, bf16({3}), "[convert] convert keeps the shape; operands: f32[2]"},
      {Op::select, {f32({2}), f32({2}), f32({2})}, {}, {}, "[select] the condition must be bool; operands: f32[2], f32[2], f32[2]"},
      {Op::select,
       {boolean({3}), f32({2}), f32({2})},
       {},
       {},
       "[select] operands 0 and 1 must have one shape; operands: bool[3], f32[2], f32[2]"},
      {Op::broadcast, {f32({4})}, {}, f32({2, 4}), "[broadcast] one axis per operand dimension is needed; operands: f32[4]"},
      {Op::broadcast, {f32({4})}, axes({2}), f32({2, 4}), "[broadcast] axes must rise within the result; operands: f32[4]"},
      {Op::broadcast, {f32({2, 4})}, axes({1, 0}), f32({4, 2}), "[broadcast] axes must rise within the result; operands: f32[2, 4]"},
      {Op::broadcast, {f32({1})}, axes({0}), f32({4}), "[broadcast] operand sizes must be those of the result's axes; operands: f32[1]"},
      {Op::reshape, {f32({kTokens, 6})}, {}, f32({kTokens, 5}), "[reshape] reshape keeps the number of elements; operands: f32[T, 6]"},
      {Op::reshape, {f32({kTokens, 6})}, {}, f32({6, kSequences}), "[reshape] reshape keeps the number of elements; operands: f32[T, 6]"},
      {Op::transpose, {f32({2, 3})}, axes({0, 0}), {}, "[transpose] axes must be a permutation; operands: f32[2, 3]"},
      {Op::transpose, {f32({2, 3})}, axes({0}), {}, "[transpose] one axis per dimension is needed; operands: f32[2, 3]"},
      {Op::slice, {f32({kTokens, 3})}, range(0, 0, 1), {}, "[slice] 0 <= start <= limit <= size of a fixed axis; operands: f32[T, 3]"},
      {Op::slice, {f32({kTokens, 3})}, range(1, 1, 4), {}, "[slice] 0 <= start <= limit <= size of a fixed axis; operands: f32[T, 3]"},
      {Op::slice, {f32({kTokens, 3})}, range(2, 0, 1), {}, "[slice] axis 2 is out of range; operands: f32[T, 3]"},
      {Op::concat,
       {f32({2, 3}), f32({3, 3})},
       axes({1}),
       {},
       "[concat] parts must agree but along the axis; operands: f32[2, 3], f32[3, 3]"},
      {Op::concat,
       {f32({2, 3}), f32({3})},
       axes({1}),
       {},
       "[concat] parts must agree and be fixed along the axis; operands: f32[2, 3], f32[3]"},
      {Op::reduce_sum, {f32({2, 3})}, axes({2}), {}, "[reduce_sum] axis 2 is out of range; operands: f32[2, 3]"},
      {Op::reduce_sum, {f32({2, 3})}, axes({1, 1}), {}, "[reduce_sum] axes must differ; operands: f32[2, 3]"},
      {Op::dot, {f32({2, 3}), f32({2, 3})}, {}, {}, "[dot] inner sizes differ; operands: f32[2, 3], f32[2, 3]"},
      {Op::dot, {f32({2, 3}), f32({3})}, {}, {}, "[dot] operand 1 must have 2 dimensions; operands: f32[2, 3], f32[3]"},
      {Op::gather, {f32({9, 3}), f32({2})}, {}, {}, "[gather] operand 1 must be i32; operands: f32[9, 3], f32[2]"},
      {Op::scatter_add,
       {f32({2, 3}), i32({4})},
       {},
       f32({9, 3}),
       "[scatter_add] one row number per update is needed; operands: f32[2, 3], i32[4]"},
      {Op::scatter_add,
       {f32({2, 3}), i32({2})},
       {},
       f32({9, 4}),
       "[scatter_add] the result has the updates' width; operands: f32[2, 3], i32[2]"},
      {Op::layer_norm,
       {f32({2, 3}), f32({2}), f32({3})},
       {},
       {},
       "[layer_norm] gamma must have the row's size; operands: f32[2, 3], f32[2], f32[3]"},
      {Op::layer_norm,
       {f32({2, 3}), f32({3}), f32({2})},
       {},
       {},
       "[layer_norm] operands 1 and 2 must have one type; operands: f32[2, 3], f32[3], f32[2]"},
      {Op::layer_norm_grad,
       {f32({2, 3}), f32({3}), f32({2}), f32({3}), f32({2, 3})},
       {},
       {},
       "[layer_norm_grad] the statistics must be those of the forward; operands: f32[2, 3], f32[3], f32[2], f32[3], f32[2, 3]"},
      {Op::attention,
       {f32({kTokens, 24}), i32({kBorders})},
       heads(5),
       {},
       "[attention] the width must be 3 x heads x head size; operands: f32[T, 24], i32[B+1]"},
      {Op::attention,
       {f32({kTokens, 24}), i32({kBorders})},
       {},
       {},
       "[attention] the width must be 3 x heads x head size; operands: f32[T, 24], i32[B+1]"},
      {Op::attention_grad,
       {f32({kTokens, 24}), i32({kBorders}), f32({kTokens, 8}), f32({kTokens, 3}), f32({kTokens, 8})},
       heads(2),
       {},
       "[attention_grad] operands must be those of the forward; operands: f32[T, 24], i32[B+1], f32[T, 8], f32[T, 3], f32[T, 8]"},
      {Op::softmax_cross_entropy,
       {f32({2, 3}), i32({3})},
       {},
       {},
       "[softmax_cross_entropy] one label per row is needed; operands: f32[2, 3], i32[3]"},
      {Op::adamw,
       {f32({2}), f32({2}), f32({2}), f32({2}), f32({3})},
       {},
       {},
       "[adamw] the scalars must be f32[4]; operands: f32[2], f32[2], f32[2], f32[2], f32[3]"},
      {Op::region,
       {f32({kTokens, 4}), f32({5})},
       scaled_rows(),
       {},
       "[region] operands must be of the types of the body's inputs; operands: f32[T, 4], f32[5]"},
      {Op::region, {f32({kTokens, 4})}, scaled_rows(), {}, "[region] one input of the body per operand is needed; operands: f32[T, 4]"},
      {Op::region, {}, {}, {}, "[region] a region has a body; operands: "},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.results);
    try {
      infer(row.op, row.in, row.attrs, row.declared);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(std::string(e.what()), row.results);
    }
  }
}

TEST(Builder, LeavesOutWhatDoesNothing) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4});
  EXPECT_EQ(b.convert(x, DType::f32), x);
  EXPECT_EQ(b.dropout(x, 0, 1), x);
  EXPECT_EQ(g.nodes.size(), 1u);
}

TEST(Dim, IsLinearInItsSymbol) {
  const SymbolValues values{1, 10, 3, 0};
  EXPECT_EQ(Dim(7).at(values), 7);
  EXPECT_EQ(kTokens.at(values), 10);
  EXPECT_EQ(kBorders.at(values), 4);
  EXPECT_EQ((Dim{Symbol::tokens, 2, -1}.at(values)), 19);
  EXPECT_EQ(to_string(f32({Dim{Symbol::tokens, 2, -1}, kPredictions, 5})), "f32[2T-1, P, 5]");
}

}  // namespace
}  // namespace muster::graph
