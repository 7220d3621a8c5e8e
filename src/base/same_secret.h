// Compares a secret with a presented one.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpurota {

// Compares in constant time, so that the time does not reveal where the two differ. An empty secret
// matches nothing.
inline bool is_same_secret(std::string_view secret, std::string_view presented) {
  if (secret.empty() || secret.size() != presented.size()) return false;
  unsigned differ = 0;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    differ |= static_cast<unsigned char>(secret[i]) ^ static_cast<unsigned char>(presented[i]);
  }
  return differ == 0;
}

}  // namespace gpurota
