// The figures of a GPU's board, as text: power, heat, clocks, errors. Pure.
#pragma once

#include "proto/types.h"

#include <string>

namespace gpurota::cli {

// "312/700 W", with the limit where it is known; empty: the driver does not tell. So the others.
std::string power_text(const proto::Gpu& gpu);
// "61/87 °C": the second is where it lowers its clocks.
std::string heat_text(const proto::Gpu& gpu);
// "1755 MHz, limited by power".
std::string clock_rate_text(const proto::Gpu& gpu);
// "2 Xid errors, 1 uncorrected ECC error"; empty, too, if there are none.
std::string board_errors_text(const proto::Gpu& gpu);

}  // namespace gpurota::cli
