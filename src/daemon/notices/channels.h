// How a notice leaves the machine: by the site's program, by mail, by a webhook. Each channel is a
// program that gets a text on standard input. Pure.
//
// Secrets (the URL of a webhook, its headers) are only in that text. curl reads the text as its
// configuration, so neither its arguments nor its environment show them.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "ports/program_runner.h"
#include "proto/types.h"

#include <array>
#include <string>
#include <vector>

namespace gpurota::daemon {

enum class Channel { kCommand, kMail, kWebhook };
inline constexpr std::array kChannels = {Channel::kCommand, Channel::kMail, Channel::kWebhook};

// "command", "mail", "webhook": stable.
const char* to_string(Channel channel);
// The channels that the configuration names.
std::vector<Channel> channels_of(const config::Notify& site);
// The program that sends this notice by the channel. An error: the notice cannot be sent to this
// user.
Result<ports::Program> program_for(Channel channel, const config::Notify& site,
                                   const proto::Notice& notice);

}  // namespace gpurota::daemon
