// The result of a lookup, or nothing. The caller must check before using it: `if_there` is the only
// access. A Maybe does not own the object found, and is valid as long as the object stays at its
// address. Any thread.
#pragma once

namespace gpurota {

template <class T>
class [[nodiscard]] Maybe {
 public:
  constexpr Maybe() = default;  // nothing
  constexpr explicit Maybe(T& found) : found_(&found) {}

  constexpr explicit operator bool() const { return found_ != nullptr; }
  // The object found, or nullptr.
  constexpr T* if_there() const { return found_; }

 private:
  T* found_ = nullptr;
};

}  // namespace gpurota
