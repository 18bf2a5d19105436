#include "graph/serialize.h"

#include <cstring>

#include "core/error.h"

namespace muster::graph {
namespace {

constexpr uint32_t kFormat = 2;
constexpr int kMaxDepth = 4;  // of bodies in bodies

class Writer {
 public:
  template <typename T>
  void number(T v) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    char raw[sizeof v];
    std::memcpy(raw, &v, sizeof v);
    bytes.append(raw, sizeof v);
  }
  void text(const std::string& s) {
    number(static_cast<uint32_t>(s.size()));
    bytes += s;
  }
  void type(const Type& t) {
    number(t.dtype);
    number(static_cast<uint8_t>(t.dims.size()));
    for (const Dim& d : t.dims) number(d.symbol), number(d.scale), number(d.offset);
  }
  void value(Value v) { number(v.node), number(v.output); }
  void attrs(const Attrs& a) {
    number(static_cast<uint8_t>(a.axes.size()));
    for (const int64_t axis : a.axes) number(axis);
    number(a.start), number(a.limit);
    number(static_cast<uint8_t>(a.transpose_a | a.transpose_b << 1 | a.approximate << 2 | a.bf16 << 3));
    number(a.value), number(a.rate), number(a.stream), number(a.heads);
    number(a.beta1), number(a.beta2), number(a.weight_decay), number(a.parts);
    number(static_cast<uint8_t>(a.body != nullptr));
    if (a.body) graph(*a.body);
  }
  void graph(const Graph& g) {
    number(static_cast<uint32_t>(g.nodes.size()));
    for (const Node& n : g.nodes) {
      number(n.op);
      number(static_cast<uint16_t>(n.inputs.size()));
      for (const Value v : n.inputs) value(v);
      attrs(n.attrs);
      number(static_cast<uint16_t>(n.types.size()));
      for (const Type& t : n.types) type(t);
      text(n.name);
    }
    number(static_cast<uint32_t>(g.outputs.size()));
    for (const Output& o : g.outputs) text(o.name), value(o.value);
  }

  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T number() {
    T v{};
    need(sizeof v);
    std::memcpy(&v, rest_.data(), sizeof v);
    rest_.remove_prefix(sizeof v);
    return v;
  }
  /// An enumerator up to `last`.
  template <typename E>
  E one_of(E last) {
    const auto v = number<uint8_t>();
    if (v > static_cast<uint8_t>(last)) fail();
    return static_cast<E>(v);
  }
  /// A count of things of at least `least` bytes each: never more than there are bytes for.
  template <typename T>
  size_t count(size_t least) {
    const auto n = static_cast<size_t>(number<T>());
    if (n * least > rest_.size()) fail();
    return n;
  }
  std::string text() {
    const size_t n = count<uint32_t>(1);
    std::string s(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return s;
  }
  Type type() {
    Type t;
    t.dtype = one_of(DType::boolean);
    t.dims.resize(count<uint8_t>(17));
    for (Dim& d : t.dims) d.symbol = one_of(Symbol::predictions), d.scale = number<int64_t>(), d.offset = number<int64_t>();
    return t;
  }
  Value value() {
    Value v;
    v.node = number<int32_t>(), v.output = number<int32_t>();
    return v;
  }
  Attrs attrs(int depth) {
    Attrs a;
    a.axes.resize(count<uint8_t>(8));
    for (int64_t& axis : a.axes) axis = number<int64_t>();
    a.start = number<int64_t>(), a.limit = number<int64_t>();
    const auto flags = number<uint8_t>();
    if (flags > 15) fail();
    a.transpose_a = flags & 1, a.transpose_b = flags & 2, a.approximate = flags & 4, a.bf16 = flags & 8;
    a.value = number<double>(), a.rate = number<double>(), a.stream = number<uint32_t>(), a.heads = number<int32_t>();
    a.beta1 = number<double>(), a.beta2 = number<double>(), a.weight_decay = number<double>(), a.parts = number<int32_t>();
    const auto has_body = number<uint8_t>();
    if (has_body > 1 || (has_body == 1 && depth >= kMaxDepth)) fail();
    if (has_body) a.body = std::make_shared<const Graph>(graph(depth + 1));
    return a;
  }
  Graph graph(int depth) {
    Graph g;
    g.nodes.resize(count<uint32_t>(40));
    for (Node& n : g.nodes) {
      n.op = one_of(static_cast<Op>(kOpCount - 1));
      n.inputs.resize(count<uint16_t>(8));
      for (Value& v : n.inputs) v = value();
      n.attrs = attrs(depth);
      n.types.resize(count<uint16_t>(2));
      for (Type& t : n.types) t = type();
      n.name = text();
    }
    g.outputs.resize(count<uint32_t>(12));
    for (Output& o : g.outputs) o.name = text(), o.value = value();
    return g;
  }
  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[noreturn]] static void fail() { throw Error(ErrorKind::corrupt, "[graph] the bytes are not those of a graph"); }

 private:
  void need(size_t n) const {
    if (rest_.size() < n) fail();
  }
  std::string_view rest_;
};

}  // namespace

std::string serialize(const Graph& graph) {
  Writer w;
  w.number(kFormat);
  w.graph(graph);
  return std::move(w.bytes);
}

Graph deserialize(std::string_view bytes) {
  Reader r(bytes);
  if (r.number<uint32_t>() != kFormat) Reader::fail();
  Graph g = r.graph(0);
  if (!r.done()) Reader::fail();
  return g;
}

}  // namespace muster::graph
