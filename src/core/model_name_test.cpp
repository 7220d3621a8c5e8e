#include "core/model_name.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

using Words = std::vector<std::string>;

TEST(ModelName, ReadsModelNamesOfServers) {
  EXPECT_EQ(model_of({"vllm", "serve", "meta-llama/Llama-3-8B", "--port", "80"}),
            "meta-llama/Llama-3-8B");
  EXPECT_EQ(model_of({"python3", "/opt/venv/bin/vllm", "serve", "m"}), "m");
  EXPECT_EQ(model_of({"python", "-m", "x.server", "--model", "m"}), "m");
  EXPECT_EQ(model_of({"./serve", "--model=org/m"}), "org/m");
  EXPECT_EQ(model_of({"lm_eval", "--model", "hf", "--model_args", "dtype=float,pretrained=org/m"}),
            "org/m");
  EXPECT_EQ(model_of({"vllm", "serve", "--model", "m"}), "m");
}

TEST(ModelName, IsEmptyIfTheCommandNamesNone) {
  EXPECT_FALSE(model_of({}));
  EXPECT_FALSE(model_of({"python", "train.py"}));
  EXPECT_FALSE(model_of({"vllm", "serve"}));
  EXPECT_FALSE(model_of({"x", "--model"}));
  EXPECT_FALSE(model_of({"x", "--model="}));
  EXPECT_FALSE(model_of({"x", "--model", "--port"}));
  EXPECT_FALSE(model_of({"x", "--models", "m"}));
  EXPECT_FALSE(model_of({"x", "--model_args", "dtype=float16"}));
}

TEST(ModelName, IsBounded) {
  EXPECT_LE(model_of({"x", "--model", std::string(100000, 'm')})->size(), 200u);
}

}  // namespace
}  // namespace gpurota
