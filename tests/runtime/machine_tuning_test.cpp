// The measured tuning: kept and found again, made anew when its file does not hold, left out where it cannot be kept.
#include "runtime/machine_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/backends.h"
#include "runtime/compile.h"
#include "storage/file.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

class MachineTuningTest : public testing::Test {
 protected:
  MachineTuningTest() { fs::create_directory(folder_); }
  ~MachineTuningTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(folder_)) found += entry.path().string();
    return found;
  }
  const std::string folder_ = fs::temp_directory_path() / ("muster-tuning-" + std::to_string(getpid()));
  const Isa isa_ = machine_isa();
};

TEST_F(MachineTuningTest, IsMeasuredOnceAndKept) {
  const MachineTuning first = machine_tuning(isa_, folder_);
  EXPECT_EQ(first.how, "measured now, kept in " + file());
  EXPECT_GT(first.tuning.f32_gflops, 0.1);
  EXPECT_GT(first.tuning.bf16_gflops, 0.1);
  const MachineTuning second = machine_tuning(isa_, folder_);
  EXPECT_EQ(second.how, "kept in " + file());
  EXPECT_EQ(second.tuning.f32.rows, first.tuning.f32.rows);
  EXPECT_NEAR(second.tuning.bf16_gflops, first.tuning.bf16_gflops, 0.06);
}

TEST_F(MachineTuningTest, AFileThatDoesNotHoldIsMadeAnew) {
  (void)machine_tuning(isa_, folder_);
  const std::string path = file(), whole = storage::read_file(path);
  std::vector<std::string> broken{"", "nonsense", whole.substr(0, whole.size() / 2),
                                  "muster tuning 0\n" + whole.substr(whole.find('\n') + 1)};
  for (const char* line : {"f32_rows -1", "f32_rows 99999999", "f32_rows x", "f32_gflops nan"}) {
    std::string text = whole;
    const size_t at = text.find(std::string(line).substr(0, std::string(line).find(' ') + 1));
    text.replace(at, text.find('\n', at) - at, line);
    broken.push_back(text);
  }
  for (const std::string& text : broken) {
    storage::write_file_atomic(path, text, "tuning");
    EXPECT_THAT(machine_tuning(isa_, folder_).how, StartsWith("measured now")) << text;
    EXPECT_EQ(machine_tuning(isa_, folder_).how, "kept in " + path);
  }
}

TEST_F(MachineTuningTest, WithoutAPlaceNothingIsMeasured) {
  const MachineTuning none = machine_tuning(isa_, "");
  EXPECT_THAT(none.how, StartsWith("not measured"));
  EXPECT_EQ(none.tuning.f32_gflops, 0);
  EXPECT_EQ(none.tuning.f32.rows, 0);
  storage::write_file_atomic(folder_ + "/file", "", "file");
  EXPECT_THAT(machine_tuning(isa_, folder_ + "/file/below").how, StartsWith("not measured"));
  if (geteuid() == 0) return;  // root may write anywhere
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(machine_tuning(isa_, folder_).how, StartsWith("not measured"));
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST(Precision, SaysWhy) {
  EXPECT_EQ(resolve_precision(Precision::automatic, Isa::amx).precision, Precision::bf16);
  EXPECT_EQ(resolve_precision(Precision::automatic, Isa::avx512).precision, Precision::f32);
  EXPECT_NE(resolve_precision(Precision::bf16, Isa::avx2).reason.find("not faster"), std::string::npos);
  EXPECT_EQ(resolve_precision(Precision::f32, Isa::amx).reason, "f32: asked for");
}

TEST(Precision, FollowsWhatWasMeasured) {
  cpu::Tuning tuning;
  tuning.f32_gflops = 100, tuning.bf16_gflops = 1500;
  EXPECT_EQ(resolve_precision(Precision::automatic, Isa::amx, tuning).precision, Precision::bf16);
  EXPECT_THAT(resolve_precision(Precision::automatic, Isa::amx, tuning).reason, StartsWith("bf16: bf16 products run 15x as fast as f32"));
  tuning.bf16_gflops = 120;  // not worth the rounding, even with tiles
  EXPECT_EQ(resolve_precision(Precision::automatic, Isa::amx, tuning).precision, Precision::f32);
  EXPECT_EQ(resolve_precision(Precision::bf16, Isa::amx, tuning).precision, Precision::bf16) << "asked for";
}

}  // namespace
}  // namespace muster::runtime
