// A deterministic model without an engine: a token per byte, logits from a hash of one text's ids, so that a text's answer says whether
// it was mixed up with another of its batch. It can be held still, slowed or made to fail on a text.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "core/error.h"
#include "core/hash.h"
#include "serve/model.h"

namespace muster::serve::test {

class FakeModel : public Model {
 public:
  explicit FakeModel(std::vector<std::string> labels = {"joy", "anger", "sad\"ness"}) {
    info_ = {.name = "fake", .model_type = "bert", .labels = std::move(labels), .max_length = 64, .vocab_size = 300, .precision = "f32"};
  }
  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  ModelInfo& change() { return info_; }

  [[nodiscard]] TokenizedText tokenize(std::string_view text, const TokenizeOptions& options) const override {
    const auto limit = static_cast<size_t>(options.max_length > 0 ? options.max_length : info_.max_length);
    if (text.size() + 2 > limit && !options.truncate)
      throw Error(ErrorKind::too_large, "the text has {} tokens, the limit is {}", text.size() + 2, limit);
    TokenizedText out{.ids = {256}, .truncated = text.size() + 2 > limit};
    for (const char c : text.substr(0, limit - 2)) out.ids.push_back(static_cast<uint8_t>(c));
    out.ids.push_back(257);
    return out;
  }

  std::vector<float> run(const text::TokenBatch& batch) override {
    {
      std::unique_lock lock(mutex_);
      ++started_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_; });
    }
    std::this_thread::sleep_for(slow_.load());
    std::vector<float> out;
    for (size_t i = 0; i + 1 < batch.cu_seqlens.size(); ++i) {
      const auto begin = static_cast<size_t>(batch.cu_seqlens[i]), end = static_cast<size_t>(batch.cu_seqlens[i + 1]);
      const std::span<const int32_t> ids = std::span(batch.ids).subspan(begin, end - begin);
      if (ids.size() > 1 && ids[1] == '!') throw Error(ErrorKind::internal, "the engine broke on '!'");
      for (size_t label = 0; label < info_.labels.size(); ++label)
        out.push_back(ids.size() > 1 && ids[1] == '?' ? std::nanf("") : logit(ids, label));
    }
    return out;
  }

  static float logit(std::span<const int32_t> ids, size_t label) {
    uint64_t hash = fnv1a({}) + label;
    for (const int32_t id : ids) hash = (hash ^ static_cast<uint64_t>(id)) * 0x100000001b3ull;
    return static_cast<float>(static_cast<int64_t>(hash >> 40) - (1 << 23)) * 0x1p-21f;  // [-4, 4)
  }

  /// run() waits until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  /// Waits until run() has been entered `count` times.
  void wait_started(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return started_ >= count; });
  }
  void slow_down(std::chrono::microseconds time) { slow_ = time; }

 private:
  ModelInfo info_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int started_ = 0;
  std::atomic<std::chrono::microseconds> slow_{};
};

}  // namespace muster::serve::test
