// How a question for memory, or a context, is answered.
#pragma once

namespace gpurota::interposer {

enum class Answer {
  kYes,
  kNo,    // the lease has no room, or there is no such lease
  kAway,  // no daemon within the time that growth waits
};

}  // namespace gpurota::interposer
