// AdamW and clipping against PyTorch, on both backends.
#include "train/optimizer.h"

#include <cmath>
#include <limits>

#include "train/gradient_norm.h"
#include "train/world.h"

namespace muster::train {
namespace {

models::Parameters tensors_of(const nlohmann::json& values, const nlohmann::json& shapes) {
  models::Parameters tensors;
  for (const auto& [name, shape] : shapes.items()) tensors[name] = Tensor::from(values[name].get<std::vector<float>>(), shape.get<Shape>());
  return tensors;
}

class OptimizerOn : public testing::TestWithParam<std::string> {};

TEST_P(OptimizerOn, ten_steps_are_those_of_pytorch) {
  const auto g = golden("train/adamw.json");
  TrainingArguments a;
  a.adam_beta1 = g["beta1"], a.adam_beta2 = g["beta2"], a.adam_epsilon = g["epsilon"], a.weight_decay = g["weight_decay"];
  ThreadPool threads(2);
  runtime::Options options;
  options.backend = GetParam();
  const models::Parameters parameters = tensors_of(g["start"], g["shapes"]);
  OptimizerStep optimizer(parameters, a, options, threads);
  int64_t step = 0;
  for (const auto& s : g["steps"]) {
    const models::Parameters gradients = tensors_of(s["gradients"], g["shapes"]);
    const double norm = global_norm(gradients, threads);
    EXPECT_NEAR(norm, s["norm"].get<double>(), 1e-6 * norm);
    optimizer.update(gradients, ++step, s["learning_rate"], clip_factor(norm, g["max_grad_norm"]));
    for (const auto& [name, tensor] : parameters) {
      const auto expected = s["parameters"][name].get<std::vector<float>>();
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(tensor.as<float>()[i], expected[i], 2e-6) << name << " " << i << " step " << step;
    }
  }
  for (const float m : optimizer.second_moments().at("layer.bias").as<float>()) EXPECT_GT(m, 0.0f);
}

INSTANTIATE_TEST_SUITE_P(train, OptimizerOn, testing::Values("ref", "cpu"), [](const auto& backend) { return backend.param; });

TEST(GradientNorm, is_the_norm_of_all_and_the_same_for_any_threads) {
  models::Parameters gradients;
  double sum = 0;
  uint32_t bits = 1;
  for (const auto& [name, size] : std::map<std::string, int64_t>{{"a", 3}, {"b", 200001}, {"c", 65536}}) {
    Tensor t(DType::f32, {size});
    for (float& x : t.as<float>()) {
      bits = bits * 1664525 + 1013904223;
      x = static_cast<float>(bits >> 8) * 0x1p-24f - 0.5f;
      sum += static_cast<double>(x) * x;
    }
    gradients[name] = t;
  }
  ThreadPool one(1), three(3);
  const double norm = global_norm(gradients, one);
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-9 * norm);
  EXPECT_EQ(norm, global_norm(gradients, three));
  gradients["b"].as<float>()[77777] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(global_norm(gradients, three)));
  gradients["b"].as<float>()[77777] = std::nanf("");
  EXPECT_FALSE(std::isfinite(global_norm(gradients, three)));
  gradients["b"].as<float>()[77777] = std::numeric_limits<float>::max();  // its square is no f32
  EXPECT_TRUE(std::isfinite(global_norm(gradients, three)));
}

TEST(GradientNorm, clipping_leaves_small_ones_alone) {
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(10, 1), 0.1, 1e-7);
  EXPECT_EQ(clip_factor(10, 0), 1);
}

}  // namespace
}  // namespace muster::train
