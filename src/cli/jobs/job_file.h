// A file of jobs, as `gpurota job export` writes it and `apply` reads it: text to plain data and
// back. What is wrong in it is told with its line. Pure.
//
//     [[job]]
//     name = "web"
//     command = ["python", "serve.py"]
//     options = ["--memory", "8G"]        # of gpurota run
//     workdir = "/srv/web"                # else the home directory
//     restart = "on-failure"              # else "no"
//     output = "journal"                  # else "file"
//     after = ["db"]
//     start = false                       # else it is started when it is added
//     variables = ["TOKEN"]               # the value: of the job that is there, else of one's environment
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

// `file`: its name, for what is said of it. All or nothing.
Result<std::vector<proto::JobDefinition>> parse_job_file(std::string_view text,
                                                         const std::string& file);

}  // namespace gpurota::cli
