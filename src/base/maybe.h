// What a look-up has found, or nothing. Whoever looks has to ask before using it: there is no way
// around `if_there`. It does not own what it has found, and is good for as long as that stays where
// it is. Any thread.
#pragma once

namespace gpurota {

template <class T>
class [[nodiscard]] Maybe {
 public:
  constexpr Maybe() = default;  // nothing
  constexpr explicit Maybe(T& found) : found_(&found) {}

  constexpr explicit operator bool() const { return found_ != nullptr; }
  // nullptr: nothing was found.
  constexpr T* if_there() const { return found_; }

 private:
  T* found_ = nullptr;
};

}  // namespace gpurota
