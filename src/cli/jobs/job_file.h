// A file of jobs, as `gpurota job export` writes it and `apply` reads it: text to plain data and
// back. An error names the line of the mistake. Pure.
//
//     [[job]]
//     name = "web"
//     command = ["python", "serve.py"]
//     array = "1-50"                      # an array: run once for each of these
//     each = [["a", "b"], ["c"]]          # or, instead of the command: one for each item
//     at_once = 4                         # items that run at the same time, else 64
//     options = ["--memory", "8G"]        # of gpurota run
//     workdir = "/srv/web"                # else the home directory
//     restart = "on-failure"              # else "no"
//     output = "journal"                  # else "file"
//     tty = true                          # its output is a terminal
//     after_success = ["prepare"]         # starts when these have ended well
//     after_end = ["load"]                # … have ended
//     boot_after = ["db"]                 # after a reboot, started after these (old name: after)
//     start = false                       # else it is started when it is added
//     variables = ["TOKEN"]               # their values: the job's, else of the environment
//     [job.environment]
//     MODE = "fast"
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

std::string job_file_text(const std::vector<proto::JobDefinition>& jobs);

// `file`: the name of the file, for messages. A file with a mistake is refused as a whole.
// `warning`: about a word that will be removed; empty: there is none.
Result<std::vector<proto::JobDefinition>> parse_job_file(std::string_view text,
                                                         const std::string& file,
                                                         std::string* warning = nullptr);

}  // namespace gpurota::cli
