#include "train/checkpoint_writer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "core/log.h"

namespace muster::train {
namespace {

constexpr int kNice = 10;  // the cores belong to the step; the writer takes what it leaves, and on a busy machine about a tenth

class Clock {
 public:
  explicit Clock(double& sum) : sum_(sum) {}
  ~Clock() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

 private:
  double& sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<Tensor> tensors_of(const Snapshot& s) {
  std::vector<Tensor> tensors;
  for (const models::Parameters* parameters : {&s.parameters, &s.first_moments, &s.second_moments})
    for (const auto& [name, tensor] : *parameters) tensors.push_back(tensor);
  return tensors;
}

}  // namespace

CheckpointWriter::~CheckpointWriter() { join(); }

void CheckpointWriter::join() {
  if (thread_.joinable()) thread_.join();
  frozen_.reset();
}

void CheckpointWriter::start(Snapshot snapshot, int64_t save_total_limit) {
  const Clock clock(stalled_);
  wait();
  frozen_ = std::make_unique<FrozenTensors>(tensors_of(snapshot));
  done_ = false;
  thread_ = std::thread([this, save_total_limit, snapshot = std::move(snapshot)] {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // of this thread; in vain is no harm
    try {
      save_checkpoint(snapshot, [this](std::span<const std::byte> bytes, const storage::TakeBytes& take) { frozen_->read(bytes, take); });
      if (save_total_limit > 0) rotate_checkpoints(snapshot.arguments.output_dir, save_total_limit, snapshot.state.best_checkpoint());
    } catch (...) {
      failure_ = std::current_exception();
    }
    done_ = true;
  });
}

void CheckpointWriter::release() {
  if (!frozen_ || done_) return;
  const Clock clock(stalled_);
  frozen_->release(threads_);
}

void CheckpointWriter::wait() {
  if (!thread_.joinable()) return;
  join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  ++written_;
}

void CheckpointWriter::check() {
  if (done_) wait();
}

}  // namespace muster::train
