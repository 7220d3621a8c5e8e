// Whether somebody knows a secret.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpurota {

// In a time that tells nothing about where they differ. An empty secret is nobody's.
inline bool is_same_secret(std::string_view secret, std::string_view presented) {
  if (secret.empty() || secret.size() != presented.size()) return false;
  unsigned differ = 0;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    differ |= static_cast<unsigned char>(secret[i]) ^ static_cast<unsigned char>(presented[i]);
  }
  return differ == 0;
}

}  // namespace gpurota
