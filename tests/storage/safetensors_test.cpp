// safetensors against files of the reference writer, and every way a file may be malformed.
#include "storage/safetensors.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "storage/file.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using SafetensorsTest = TemporaryFolder;
const std::string kGoldens = std::string(MUSTER_TEST_DATA) + "/storage";
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A file of a header as given and so many bytes of data.
std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &length, 8);
  return result + header + std::string(data_bytes, '\1');
}

TEST_F(SafetensorsTest, ReadsWhatTheReferenceWrites) {
  const SafetensorsFile file = SafetensorsFile::open(kGoldens + "/mixed.safetensors");
  EXPECT_THAT(file.metadata(), ElementsAre(testing::Pair("format", "pt")));
  EXPECT_EQ(file.tensors().size(), 12U);
  EXPECT_THAT(file.view("f32").as<float>(), ElementsAre(-3 * 0.37F, -2 * 0.37F, -0.37F, 0, 0.37F, 2 * 0.37F));
  EXPECT_EQ(file.view("f32").shape, (Shape{2, 3}));
  EXPECT_THAT(file.load_f32("f64").as<float>(), ElementsAre(-1.5F * 0.37F, -0.5F * 0.37F, 0.5F * 0.37F));
  EXPECT_THAT(file.view("i64").as<int64_t>(), ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(file.view("i32").as<int32_t>(), ElementsAre(-7, 7));
  EXPECT_THAT(file.view("u8").as<uint8_t>(), ElementsAre(0, 255, 3));
  EXPECT_EQ(file.view("flag").dtype, DType::boolean);
  EXPECT_EQ(file.view("scalar").shape, Shape{});
  EXPECT_THAT(file.load_f32("scalar").as<float>(), ElementsAre(2.5F));
  EXPECT_EQ(file.view("empty").shape, (Shape{0, 4}));
  EXPECT_TRUE(file.load_f32("empty").as<float>().empty());
  EXPECT_THAT(file.load_f32("names/with \"quotes\" and é").as<float>(), ElementsAre(1.0F));
  const Tensor half = file.load_f32("f16");
  EXPECT_THAT(half.as<float>().first(7), ElementsAre(0, -0.0F, 1.5F, 65504.0F, 0x1p-24F, -336 * 0x1p-24F, kInfinity));
  EXPECT_TRUE(std::signbit(half.as<float>()[1]));
  EXPECT_TRUE(std::isnan(half.as<float>()[7]));
  const Tensor brain = file.load_f32("bf16");
  EXPECT_THAT(brain.as<float>().first(2), ElementsAre(1.0F, -3.140625F));
  EXPECT_EQ(brain.as<float>()[3], -kInfinity);
  EXPECT_GT(brain.as<float>()[4], 0);  // subnormal, not flushed
}

TEST_F(SafetensorsTest, OtherTypesAreListedButNotRead) {
  const SafetensorsFile file = SafetensorsFile::open(kGoldens + "/mixed.safetensors");
  EXPECT_EQ(file.tensors().at("i8").dtype_name, "I8");
  EXPECT_FALSE(file.tensors().at("i8").dtype.has_value());
  EXPECT_THAT(message_of(ErrorKind::unsupported, [&] { (void)file.view("i8"); }),
              HasSubstr("mixed.safetensors: tensor 'i8' is I8; muster reads F32"));
  EXPECT_THAT(message_of(ErrorKind::unsupported, [&] { (void)file.load_f32("i64"); }),
              HasSubstr("tensor 'i64' is i64, not floating point"));
  EXPECT_THAT(message_of(ErrorKind::not_found, [&] { (void)file.view("gone"); }), HasSubstr("mixed.safetensors: no tensor 'gone'"));
}

TEST_F(SafetensorsTest, WritesTheBytesOfTheReference) {
  const SafetensorsFile file = SafetensorsFile::open(kGoldens + "/written.safetensors");
  std::vector<NamedTensorView> tensors;
  for (const auto& [name, info] : file.tensors()) tensors.push_back({name, file.view(name)});
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(path("x"), tensors);
  EXPECT_EQ(read_file(path("x")), read_file(kGoldens + "/written.safetensors"));
}

TEST_F(SafetensorsTest, EveryHalfIsConvertedAsCoreDoes) {
  Tensor halves(DType::f16, {65536});
  for (uint32_t i = 0; i < 65536; ++i) halves.as<F16>()[i] = F16{static_cast<uint16_t>(i)};
  write_safetensors(path("x"), {{"h", halves.view()}});
  const Tensor floats = SafetensorsFile::open(path("x")).load_f32("h");
  for (uint32_t i = 0; i < 65536; ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(floats.as<float>()[i]), std::bit_cast<uint32_t>(to_f32(F16{static_cast<uint16_t>(i)}))) << i;
}

TEST_F(SafetensorsTest, MisalignedTensorsAreCopied) {
  std::string content =
      file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})", 9);
  const std::array<float, 2> values{1.25F, -7.0F};
  std::memcpy(content.data() + content.size() - 8, values.data(), 8);
  write_file_atomic(path("x"), content);
  const SafetensorsFile file = SafetensorsFile::open(path("x"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.view("b").data) % alignof(float), 0U);
  EXPECT_THAT(file.view("b").as<float>(), ElementsAre(1.25F, -7.0F));
  EXPECT_THAT(file.load_f32("b").as<float>(), ElementsAre(1.25F, -7.0F));
}

TEST_F(SafetensorsTest, CopiesOutliveTheFirstObject) {
  auto first = std::make_unique<SafetensorsFile>(SafetensorsFile::open(kGoldens + "/mixed.safetensors"));
  const SafetensorsFile second = *first;
  const TensorView view = first->view("i32");
  first.reset();
  EXPECT_THAT(view.as<int32_t>(), ElementsAre(-7, 7));
}

TEST_F(SafetensorsTest, WriterRefusesWhatNobodyCouldRead) {
  const Tensor one(DType::f32, {1});
  EXPECT_THAT(message_of(ErrorKind::invalid_argument,
                         [&] { write_safetensors(path("x"), {{"a", one.view()}, {"b", one.view()}, {"a", one.view()}}); }),
              HasSubstr("'a' is given twice"));
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { write_safetensors(path("x"), {{"__metadata__", one.view()}}); }),
              HasSubstr("reserved"));
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { write_safetensors(path("x"), {{"\xff", one.view()}}); }),
              HasSubstr("not valid UTF-8"));
  EXPECT_EQ(entries(), 0);
  write_safetensors(path("none"), {}, {});
  EXPECT_TRUE(SafetensorsFile::open(path("none")).tensors().empty());
}

struct Malformed {
  const char* name;
  std::string content;
  const char* message;
};

class MalformedSafetensors : public TemporaryFolder, public testing::WithParamInterface<Malformed> {};

TEST_P(MalformedSafetensors, IsRefusedWithItsReason) {
  write_file_atomic(path("m.safetensors"), GetParam().content);
  const std::string message = message_of(ErrorKind::corrupt, [&] { SafetensorsFile::open(path("m.safetensors")); });
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, testing::StartsWith(path("m.safetensors") + ": "));
  EXPECT_THAT(message, testing::Not(HasSubstr("\n")));
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}
const std::string kLength(8, '\xff');

INSTANTIATE_TEST_SUITE_P(
    All, MalformedSafetensors,
    testing::Values(
        Malformed{"Empty", "", "0 bytes are too few"}, Malformed{"Short", "1234567", "7 bytes are too few"},
        Malformed{"HugeHeader", kLength + "{}", "is over the limit of 100000000"},
        Malformed{"HeaderCut", file_of("{}", 0).substr(0, 9), "the header of 2 bytes does not fit the file of 9"},
        Malformed{"NoHeader", file_of("", 0), "does not start with '{'"},
        Malformed{"LeadingSpace", file_of(" {}", 0), "does not start with '{'"},
        Malformed{"NotJson", file_of("{\"t\":", 0), "not valid JSON"}, Malformed{"Trailing", file_of("{} x", 0), "not valid JSON"},
        Malformed{"Nul", file_of(std::string("{}\0{}", 5), 0), "has a NUL at byte 2"},
        Malformed{"BadUtf8", file_of("{\"\xc3\x28\":1}", 0), "not valid JSON in UTF-8"},
        Malformed{
            "TensorTwice",
            file_of(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
            "'t' is given twice"},
        Malformed{"MetadataTwice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "'__metadata__' is given twice"},
        Malformed{"MetadataKeyTwice", file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "has the key 'a' twice"},
        Malformed{"MetadataNumber", file_of(R"({"__metadata__":{"a":1}})", 0), "has a number where it does not belong"},
        Malformed{"FieldTwice", file_of(R"({"t":{"dtype":"U8","dtype":"U8"}})", 0), "has the key 'dtype' twice"},
        Malformed{"UnknownField", file_of(R"({"t":{"stride":[1]}})", 0), "has an unknown key 'stride'"},
        Malformed{"NoShape", file_of(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1), "lacks dtype, shape or data_offsets"},
        Malformed{"TensorIsNumber", file_of(R"({"t":1})", 0), "has a number where it does not belong, after 't'"},
        Malformed{"ShapeInShape", file_of(one("U8", "[[1]]", "[0,1]"), 1), "has an array where"},
        Malformed{"ObjectInShape", file_of(one("U8", "[{}]", "[0,1]"), 1), "has an object where"},
        Malformed{"Negative", file_of(one("U8", "[-1]", "[0,1]"), 1), "has a negative number"},
        Malformed{"Fraction", file_of(one("U8", "[1.0]", "[0,1]"), 1), "has a fraction"},
        Malformed{"OneOffset", file_of(one("U8", "[1]", "[0]"), 1), "has 1 data_offsets instead of 2"},
        Malformed{"ThreeOffsets", file_of(one("U8", "[1]", "[0,1,2]"), 1), "has 3 data_offsets"},
        Malformed{"UnknownType", file_of(one("F7", "[1]", "[0,1]"), 1), "unknown dtype 'F7'"},
        Malformed{"SizeOverInt64", file_of(one("U8", "[9223372036854775808]", "[0,1]"), 1), "9223372036854775808, which is too large"},
        Malformed{"ProductOverflows", file_of(one("F32", "[4294967296,4294967296]", "[0,0]"), 0), "which is too large"},
        Malformed{"ProductTimesTypeOverflows", file_of(one("F64", "[576460752303423488]", "[0,0]"), 0), "which is too large"},
        Malformed{"SizeMismatch", file_of(one("F32", "[2]", "[0,4]"), 4), "has F32 [2] of 8 bytes but data_offsets [0, 4]"},
        Malformed{"OffsetsFall", file_of(one("U8", "[0]", "[1,0]"), 1), "data_offsets [1, 0]"},
        Malformed{"HalfBytes", file_of(one("F4", "[3]", "[0,1]"), 1), "does not fill whole bytes"},
        Malformed{"Hole", file_of(one("U8", "[1]", "[1,2]"), 2), "starts at byte 1 of the data where 0 was expected (a hole)"},
        Malformed{
            "Overlap",
            file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3),
            "tensor 'b' starts at byte 1 of the data where 2 was expected (it overlaps another)"},
        Malformed{"DataCut", file_of(one("U8", "[2]", "[0,2]"), 1),
                  "1 bytes of tensor data where the header says 2; the file is cut short"},
        Malformed{"DataTooLong", file_of(one("U8", "[2]", "[0,2]"), 3), "the file is too long"},
        Malformed{"DeepNesting", file_of("{\"t\":" + std::string(100'000, '['), 0), "has an array where"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace muster::storage
