// The figures of a GPU's board as text: power, temperature, clocks, errors. Each text is empty if
// the driver does not report the figure. Pure.
#pragma once

#include "proto/types.h"

#include <string>

namespace gpurota::cli {

// "312/700 W", with the limit if known.
std::string power_text(const proto::Gpu& gpu);
// "61/87 °C": at the second temperature the GPU lowers its clocks.
std::string heat_text(const proto::Gpu& gpu);
// "1755 MHz, limited by power".
std::string clock_rate_text(const proto::Gpu& gpu);
// "2 Xid errors, 1 uncorrected ECC error"; also empty if there are none.
std::string board_errors_text(const proto::Gpu& gpu);

}  // namespace gpurota::cli
