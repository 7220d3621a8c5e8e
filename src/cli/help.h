// The texts of --help.
#pragma once

#include <string>
#include <string_view>

namespace gpurota::cli {

// Of a command, or of gpurota itself for "" and for anything that is no command.
std::string_view help_text(std::string_view topic);
// Of the commands about waiting and reserving; empty for others.
std::string_view queue_help_text(std::string_view topic);
// Of those about turns.
std::string_view turns_help_text(std::string_view topic);

}  // namespace gpurota::cli
