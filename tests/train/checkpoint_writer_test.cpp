// Checkpoints that are written while their tensors change.
#include "train/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "storage/file.h"
#include "train/frozen.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

std::vector<Tensor> tensors_of_sizes(const std::vector<int64_t>& sizes) {
  std::vector<Tensor> tensors;
  for (const int64_t n : sizes) {
    tensors.emplace_back(DType::f32, Shape{n});
    for (int64_t i = 0; i < n; ++i) tensors.back().as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 1000 + n);
  }
  return tensors;
}

TEST(FrozenTensors, GiveTheOldBytesWhereverTheReaderIsWhenTheyChange) {
  ThreadPool threads(2);
  for (const size_t cut : {size_t{0}, size_t{3}, size_t{1} << 20, (size_t{1} << 20) + 100, size_t{5} << 20, size_t{9} << 20}) {
    const std::vector<Tensor> tensors = tensors_of_sizes({1, 300'000, 1'000'000, 7, 900'000});
    std::vector<std::byte> expected, found;
    for (const Tensor& t : tensors) {
      const auto* bytes = static_cast<const std::byte*>(t.data());
      expected.insert(expected.end(), bytes, bytes + t.bytes());
    }
    FrozenTensors frozen(tensors);
    size_t at = 0;
    const auto read_until = [&](size_t end) {
      size_t begin = 0;
      for (const Tensor& t : tensors) {
        const size_t from = std::max(at, begin), to = std::min(end, begin + t.bytes());
        if (from < to)
          frozen.read({static_cast<const std::byte*>(t.data()) + (from - begin), to - from},
                      [&](std::span<const std::byte> bytes) { found.insert(found.end(), bytes.begin(), bytes.end()); });
        begin += t.bytes();
      }
      at = end;
    };
    read_until(cut);
    frozen.release(threads);
    EXPECT_EQ(frozen.release(threads), 0u);
    for (const Tensor& t : tensors) std::memset(t.data(), 0xFF, t.bytes());
    read_until(expected.size());
    EXPECT_TRUE(found == expected) << cut;
  }
}

TEST(FrozenTensors, AReaderThatIsAtItWhenTheyAreReleased) {
  ThreadPool threads(2);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Tensor> tensors = tensors_of_sizes({2'000'000, 500'000});
    FrozenTensors frozen(tensors);
    bool same = true;
    std::thread reader([&] {
      for (const Tensor& t : tensors) {
        size_t i = 0;
        frozen.read({static_cast<const std::byte*>(t.data()), t.bytes()}, [&](std::span<const std::byte> bytes) {
          const auto* values = reinterpret_cast<const float*>(bytes.data());
          for (size_t k = 0; k < bytes.size() / 4; ++k, ++i)
            same &= values[k] == static_cast<float>(static_cast<int64_t>(i % 1000) + t.elements());
        });
      }
    });
    if (round % 2) std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    frozen.release(threads);
    for (const Tensor& t : tensors) std::memset(t.data(), 0, t.bytes());
    reader.join();
    EXPECT_TRUE(same) << round;
  }
}

struct Writing {
  World world;
  Folder folder;
  ThreadPool threads{2};
  TrainingArguments arguments = world.arguments(folder.path("out"));
  models::Parameters weights, first, second;
  Plan plan;
  Identity identity;
  TrainState state;
  Writing() {
    storage::make_folders(arguments.output_dir);
    plan.total_steps = plan.steps_per_epoch = 10;
    for (const auto& [name, tensor] : world.start) {
      weights[name] = tensor.clone();
      first[name] = tensor.clone();
      second[name] = tensor.clone();
    }
  }
  Snapshot snapshot(int64_t step) {
    state.global_step = step;
    return {world.config, weights, first, second, &world.tokenizer, state, arguments, plan, identity};
  }
  void change() {
    for (auto* parameters : {&weights, &first, &second})
      for (auto& [name, tensor] : *parameters)
        for (float& value : tensor.as<float>()) value += 1;
  }
};

TEST(CheckpointWriter, WritesWhatTheWeightsWereAndRotates) {
  Writing w;
  CheckpointWriter writer(w.threads);
  for (int64_t step = 1; step <= 4; ++step) {
    writer.start(w.snapshot(step), 2);
    w.state.global_step = 77;  // the run goes on
    writer.release();
    w.change();
  }
  writer.wait();
  EXPECT_EQ(writer.written(), 4);
  const auto folders = list_checkpoints(w.arguments.output_dir);
  ASSERT_EQ(folders.size(), 2u);
  for (int64_t step = 3; step <= 4; ++step) {
    const std::string folder = w.arguments.output_dir + "/checkpoint-" + std::to_string(step);
    EXPECT_EQ(open_checkpoint(folder).state.global_step, step);
    models::Parameters weights, first, second;
    for (auto* parameters : {&weights, &first, &second})
      for (const auto& [name, tensor] : w.world.start) (*parameters)[name] = Tensor(DType::f32, tensor.shape());
    load_weights(folder, w.world.config, weights);
    load_moments(folder, first, second);
    for (const auto* parameters : {&weights, &first, &second})
      for (const auto& [name, tensor] : *parameters) {
        const auto found = tensor.as<float>(), start = w.world.start.at(name).as<float>();
        for (size_t i = 0; i < found.size(); ++i) {
          float expected = start[i];
          for (int64_t s = 1; s < step; ++s) expected += 1;
          ASSERT_EQ(found[i], expected) << name;
        }
      }
  }
}

TEST(CheckpointWriter, SaysWhatWentWrongAndCanGoOn) {
  Writing w;
  CheckpointWriter writer(w.threads);
  std::filesystem::remove_all(w.arguments.output_dir);
  std::ofstream(w.arguments.output_dir) << "a file in the way";
  writer.start(w.snapshot(1), 0);
  EXPECT_THAT(message_of(ErrorKind::io, [&] { writer.wait(); }), HasSubstr("out"));
  std::filesystem::remove(w.arguments.output_dir);
  storage::make_folders(w.arguments.output_dir);
  writer.start(w.snapshot(2), 0);
  writer.wait();
  EXPECT_EQ(list_checkpoints(w.arguments.output_dir).size(), 1u);
}

}  // namespace
}  // namespace muster::train
