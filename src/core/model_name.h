// Finds the model that a command serves or trains in its command line: `vllm serve MODEL`, `--model
// MODEL`, lm_eval's `--model_args pretrained=MODEL`. Pure. The result is untrusted text.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpurota {

std::optional<std::string> model_of(const std::vector<std::string>& argv);

}  // namespace gpurota
