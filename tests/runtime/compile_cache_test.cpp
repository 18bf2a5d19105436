// The compile cache: what is stored comes back, what is broken is made anew, what cannot be written is done without, and any number of
// processes may share a folder, killed at any moment.
#include "runtime/compile_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/philox.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "runtime/compile.h"
#include "storage/file.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;
using graph::Builder;
using graph::Graph;
using graph::kTokens;

/// A program with one region and one without.
Graph program(double offset = 1) {
  Graph g;
  Builder b(g);
  const auto x = b.input("x", DType::f32, {kTokens, 24});
  const auto y = b.layer_norm(b.add(x, b.constant(offset, {kTokens, 24})), b.parameter("gamma", {24}), b.parameter("beta", {24}), 1e-5);
  b.output("y", b.gelu(y));
  return g;
}

std::vector<float> answer(std::unique_ptr<backend::Executable> executable) {
  TensorMap parameters{{"gamma", Tensor(DType::f32, {24})}, {"beta", Tensor(DType::f32, {24})}};
  Tensor x(DType::f32, {3, 24});
  Philox random(4);
  for (Tensor* t : {&parameters["gamma"], &parameters["beta"], &x})
    for (float& v : t->as<float>()) v = static_cast<float>(random.normal());
  Session session(std::move(executable), parameters);
  const auto y = session.run({{"x", x}}).at("y").as<float>();
  return {y.begin(), y.end()};
}

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "muster_cache_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.cache_folder = folder_;
    options_.precision = Precision::f32;
    options_.on_compiled = [this](const CompileReport& r) { reports_.push_back(r); };
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<float> run(const Graph& g = program()) { return answer(compile(g, options_, threads_)); }
  /// Every file but the machine's tuning (machine_tuning.h).
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& e : fs::directory_iterator(folder_))
      if (!e.path().filename().string().starts_with("tuning-")) found.push_back(e.path());
    return found;
  }

  ThreadPool threads_{1};
  std::string folder_;
  Options options_;
  std::vector<CompileReport> reports_;
};

TEST_F(Cache, TheSecondTimeNothingIsCompiled) {
  const std::vector<float> first = run(), second = run();
  EXPECT_EQ(first, second);
  ASSERT_EQ(reports_.size(), 2u);
  EXPECT_FALSE(reports_[0].from_cache);
  EXPECT_EQ(reports_[0].regions, 1u);
  EXPECT_GT(reports_[0].object_bytes, 0u);
  EXPECT_TRUE(reports_[1].from_cache);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(Cache, WhateverChangesTheProgramIsAnotherEntry) {
  (void)run();
  (void)run(program(2));
  options_.disabled = {"fuse"};
  (void)run();
  options_.disabled = {};
  options_.precision = Precision::bf16;
  (void)run();
  Options other = options_;
  other.isa = Isa::avx512;
  EXPECT_FALSE(compile_ahead(program(), other).from_cache);
  other.isa = Isa::amx;
  EXPECT_FALSE(compile_ahead(program(), other).from_cache);
  EXPECT_TRUE(compile_ahead(program(), other).from_cache) << "there by now";
  for (const CompileReport& r : reports_) EXPECT_FALSE(r.from_cache);
  EXPECT_EQ(entries().size(), 6u);
}

TEST_F(Cache, ABrokenEntryIsMadeAnew) {
  const std::vector<float> right = run();
  const fs::path entry = entries().at(0);
  const std::string whole = storage::read_file(entry.string());
  std::vector<std::string> broken{"", "x", whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1), whole + "x"};
  for (const size_t at : {size_t{0}, whole.size() / 3, whole.size() - 120, whole.size() - 80, whole.size() - 4}) {
    broken.push_back(whole);
    broken.back()[at] = static_cast<char>(broken.back()[at] ^ 0x10);
  }
  for (const std::string& bytes : broken) {
    fs::remove(entry);  // a new file: the loader still maps the old one
    std::ofstream(entry, std::ios::binary) << bytes;
    reports_.clear();
    EXPECT_EQ(run(), right);
    EXPECT_FALSE(reports_.at(0).from_cache) << bytes.size();
    EXPECT_EQ(run(), right);
    EXPECT_TRUE(reports_.at(1).from_cache) << "and the new one holds";
  }
}

TEST_F(Cache, AnEntryWithoutTheFunctionsWantedIsMadeAnew) {
  const std::vector<float> right = run();
  const fs::path entry = entries().at(0);
  const CompileCache cache(folder_);
  const CachedProgram program = *cache.find(entry.stem().string());
  fs::remove(entry);
  std::string why;
  ASSERT_TRUE(cache.store(entry.stem().string(), program.graph, {}, why)) << "the graph without its code";
  reports_.clear();
  EXPECT_EQ(run(), right);
  EXPECT_FALSE(reports_.at(0).from_cache);
  EXPECT_EQ(run(), right);
  EXPECT_TRUE(reports_.at(1).from_cache);
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsDoneWithout) {
  const std::vector<float> right = run();
  options_.cache_folder = "/proc/muster";
  EXPECT_EQ(run(), right);
  EXPECT_THAT(reports_.back().not_stored, testing::HasSubstr("/proc/muster"));
}

TEST_F(Cache, AFullDiskIsDoneWithout) {
  // An entry much larger than the object, which on its way goes through anonymous files that the same limit holds for.
  Graph large = program();
  Builder b(large);
  for (int i = 0; i < 4000; ++i) (void)b.input(fmt::format("unused{}", i), DType::f32, {1});
  std::string message;
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  try {
    (void)compile(large, options_, threads_);
  } catch (const Error& e) {
    message = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "");
  EXPECT_FALSE(reports_.at(0).not_stored.empty());
  EXPECT_TRUE(entries().empty()) << "no part of an entry is left";
}

TEST_F(Cache, AFolderThatOthersMayWriteIsRefused) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_THROW((void)run(), Error);
}

TEST_F(Cache, TheLeastRecentlyUsedGoFirst) {
  (void)run(program(1)), (void)run(program(2)), (void)run(program(3));
  uint64_t total = 0;
  for (const auto& e : entries()) total += fs::file_size(e);
  const auto now = fs::file_time_type::clock::now();
  for (const auto& e : entries()) fs::last_write_time(e, now - std::chrono::hours(2));
  (void)run(program(2));  // used just now
  options_.cache_limit = total - 1;
  (void)run(program(4));
  reports_.clear();
  (void)run(program(2)), (void)run(program(4));
  EXPECT_TRUE(reports_.at(0).from_cache);
  EXPECT_TRUE(reports_.at(1).from_cache);
  EXPECT_EQ(entries().size(), 3u) << "one of the two old ones is gone";
}

/// Forks `count` processes that run `body` and exit with 0 or, after an exception or a false, 1.
std::vector<pid_t> fork_all(int count, const std::function<bool(int)>& body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      int code = 1;
      try {
        code = body(i) ? 0 : 1;
      } catch (const std::exception&) {
      }
      _exit(code);
    }
    children.push_back(child);
  }
  return children;
}

TEST_F(Cache, EightProcessesAtOnceAllAnswerRight) {
  options_.on_compiled = {};
  options_.cache_folder = "";
  const std::vector<float> right = run();
  options_.cache_folder = folder_;
  for (const pid_t child : fork_all(8, [&](int) { return run() == right && run() == right; })) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(Cache, KilledWritersLeaveNothingThatHurts) {
  options_.on_compiled = {};
  options_.cache_folder = "";
  const std::vector<float> right = run();
  options_.cache_folder = folder_;
  for (int i = 0; i < 24; ++i) {
    const std::vector<pid_t> child = fork_all(1, [&](int) {
      for (double k = 10; k < 100; ++k) (void)run(program(k + 100 * i));
      return true;
    });
    usleep(static_cast<useconds_t>(2000 + 1700 * i));
    kill(child[0], SIGKILL);
    waitpid(child[0], nullptr, 0);
  }
  EXPECT_EQ(run(), right);
  for (const auto& e : entries()) {
    EXPECT_EQ(e.extension(), ".muster") << "leftovers are swept by the next writer: " << e;
    EXPECT_TRUE(CompileCache(folder_).contains(e.stem().string())) << e;
  }
}

TEST(Serialize, AGraphComesBackAndNothingElseIsTaken) {
  Graph g = program();
  graph::Attrs attrs;
  attrs.body = std::make_shared<Graph>(program(3));
  attrs.axes = {1, 0}, attrs.rate = 0.125, attrs.stream = 9, attrs.bf16 = true;
  g.nodes[2].attrs = attrs;
  const std::string bytes = serialize(g);
  const Graph back = graph::deserialize(bytes);
  EXPECT_EQ(to_string(back), to_string(g));
  EXPECT_EQ(serialize(back), bytes);
  EXPECT_THROW((void)graph::deserialize(bytes + "x"), Error);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_THROW((void)graph::deserialize(bytes.substr(0, n)), Error);
  Philox random(8);
  for (int i = 0; i < 2000; ++i) {  // any bytes: an error or a graph, never a crash
    std::string fuzzed = bytes;
    for (int k = 0; k < 3; ++k) fuzzed[random.below(fuzzed.size())] = static_cast<char>(random.below(256));
    try {
      verify(graph::deserialize(fuzzed));
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace muster::runtime
