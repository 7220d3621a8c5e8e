// The result of a look-up, or nothing. The caller has to check before using it: there is no way
// around `if_there`. A Maybe does not own the object that was found, and is valid for as long as
// the object stays at its address. Any thread.
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
