// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/log/log.h"

namespace resmgr::test {

// Takes the log's lines in place of stderr while it lives: all, or those with one text. There may
// be one at a time; lines of other threads are read when these have ended.
class CapturedLog {
 public:
  explicit CapturedLog(std::string_view only = {}) {
    SetLogWriter([this, only = std::string(only)](std::string_view line) {
      if (line.find(only) != std::string_view::npos) lines.emplace_back(line);
    });
  }
  ~CapturedLog() { SetLogWriter(nullptr); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::string> With(std::string_view text) const {
    std::vector<std::string> with = lines;
    std::erase_if(with,
                  [text](const std::string& line) { return line.find(text) == std::string::npos; });
    return with;
  }
  int Times(std::string_view text) const {
    int times = 0;
    const std::string all = Text();
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
      ++times;
    return times;
  }
  std::string Text() const {
    std::string all;
    for (const std::string& line : lines)
      all += line;
    return all;
  }

  std::vector<std::string> lines;
};

}  // namespace resmgr::test
