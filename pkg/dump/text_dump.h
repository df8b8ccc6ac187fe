// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/dump/event.h"
#include "pkg/dump/output_file.h"

namespace resmgr::dump {

// Takes one line for the log, without a newline. `warning`: the line reports a failed call, or a
// failure to dump. Called on the writer's thread, possibly even after a Dumper::Close that returned
// false.
using LogSink = std::function<void(bool warning, std::string_view line)>;

// Formats events as the lines that users read (README.md), for the log and for a file, whose lines
// start with the time of the request or the latency of the reply. Used by one thread.
class TextDump {
 public:
  explicit TextDump(LogSink log) : log_(std::move(log)) {}

  void set_show_secrets(bool show) { show_secrets_ = show; }
  void set_count_period(std::chrono::steady_clock::duration period) { count_period_ = period; }
  void set_file(std::unique_ptr<OutputFile> file) { file_ = std::move(file); }
  OutputFile* file() { return file_.get(); }
  // Sets a function that gets each line of the file, with its line break. May be empty.
  void set_lines(std::function<void(std::string_view line)> lines) { lines_ = std::move(lines); }

  // Writes what the event's plan asks for.
  void Take(const Event& event);

 private:
  // Calls of one method.
  struct Counter {
    uint64_t total = 0;
    uint64_t at_begin = 0;  // `total` at the begin of the period
    std::chrono::steady_clock::time_point begin;
  };

  void Request(const Event& event);
  void Changed(const Event& event);
  void Reply(const Event& event);
  void End(const Event& event);
  void Lost(const Event& event);
  void Count(const Event& event);
  // Limit of the methods that are counted by name; the rest are "other methods".
  static constexpr size_t kCounters = 1024;

  // Writes the header, and the body below it; a body of a single line follows on the header's line.
  // `size_note` is added to the header's line in the file.
  void Body(std::string_view stamp, const std::string& header, std::string_view arrow,
            const Event& event, bool size_note);
  void Line(bool warning, std::string_view stamp, const Event& event, std::string_view line,
            std::string_view file_suffix = {});
  void Write(bool warning, std::string_view stamp, std::string_view line,
             std::string_view file_suffix = {});

  const LogSink log_;
  std::unique_ptr<OutputFile> file_;
  std::function<void(std::string_view line)> lines_;
  bool show_secrets_ = false;
  std::chrono::steady_clock::duration count_period_{};
  std::map<std::string, Counter, std::less<>> counters_;
};

}  // namespace resmgr::dump
