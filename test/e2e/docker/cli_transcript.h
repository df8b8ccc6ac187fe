// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/dockerd/dockerd.h"

namespace resmgr::test {

// A user's view of an engine through the `docker` command, so that two conversations can be
// compared: for each command its exit code and what it printed, in which ids and times, and nothing
// else, are replaced. A failed expectation of the running test tells where a command could not be
// run. Thread-compatible.
class CliTranscript {
 public:
  using Arguments = std::vector<std::string>;

  // Commands run in `directory`.
  CliTranscript(const std::filesystem::path& socket, std::filesystem::path directory)
      : host_("unix://" + socket.string()), directory_(std::move(directory)) {}

  // Runs a command to its end; it reads `input` and then the end of it.
  CliProcess::Result Run(const Arguments& arguments, std::string_view input = "");
  // Starts one to talk with. Null, with a failure of the test: it could not be started.
  std::unique_ptr<CliProcess> Begin(const Arguments& arguments, bool terminal = false);
  // Waits for the end of one that was begun, and notes it down.
  CliProcess::Result Finish(const Arguments& arguments, CliProcess& process);

  const std::filesystem::path& directory() const { return directory_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void Note(const Arguments& arguments, const CliProcess::Result& result);
  std::string Normalize(const std::string& text);

  const std::string host_;
  const std::filesystem::path directory_;
  std::map<std::string, size_t> ids_;  // numbered as they appear
  std::vector<std::string> lines_;
};

}  // namespace resmgr::test
