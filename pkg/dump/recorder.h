// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/dump/event.h"
#include "pkg/dump/output_file.h"

namespace resmgr::dump {

// Whether a recording has calls with these types, which are those that change pods or containers.
bool IsRecorded(const MethodTypes& types);

// Writes the data that a simulator needs to replay such calls, as JSON lines: a header, then one
// line per call at its end, and lines of what containers use (README.md has the fields).
// Environment, command lines, mounts and credentials are never included. Used by one thread.
class Recorder {
 public:
  // Times in the recording count from `start`. `gaps` is raised where the file lacks lines.
  Recorder(std::unique_ptr<OutputFile> file, std::chrono::steady_clock::time_point start,
           std::chrono::system_clock::time_point wall_start, std::atomic<uint64_t>& gaps);

  OutputFile& file() { return *file_; }
  // Goes on in another file, which gets the same header.
  void ContinueIn(std::unique_ptr<OutputFile> file);

  // Takes an event about use or losses, or of a call whose plan is to record it.
  void Take(const Event& event);

 private:
  void Request(const Event& event);
  void Reply(const Event& event);
  void End(const Event& event);
  void Lost(const Event& event);
  void Use(const Event& event);
  // One line or several, and what the recording lacks without them.
  struct Lines {
    uint64_t calls = 0;
    uint64_t use = 0;
    bool header = false;
    size_t bytes = 0;
  };
  // Appends a line, behind those that tell what was lost before.
  void Append(std::string_view text, Lines line);
  void TellLost();
  void Buffer(std::string_view text, Lines line);
  void BufferLoss(const Lines& loss);
  void NoteWritten(size_t bytes);

  std::unique_ptr<OutputFile> file_;
  std::atomic<uint64_t>& gaps_;
  std::vector<Lines> buffered_;  // each line in the file's buffer
  Lines lost_;                   // lines that the file lacks, and does not tell of yet
  const std::chrono::steady_clock::time_point start_;
  const std::string header_;
  std::unordered_map<uint64_t, nlohmann::json> calls_;  // data of calls in flight
};

}  // namespace resmgr::dump
