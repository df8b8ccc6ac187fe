// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include <spdlog/formatter.h>

#include "pkg/log/log.h"

namespace resmgr {

// The form of a log line.
//
//   text                 2026-01-02T03:04:05.678+01:00 warning [state] the message
//   text, to a journal   <4>[state] the message
//   JSON                 {"time":"...","level":"warning","source":"state","message":"the message"}
//   JSON, to a journal   <4>{"time":...}
//
// <4> is the priority that systemd's journal reads (sd-daemon(3)); the journal adds the time
// itself. JSON is valid UTF-8 whatever the message holds.
struct LineStyle {
  LogFormat format = LogFormat::kText;
  bool journal = false;

  friend bool operator==(const LineStyle&, const LineStyle&) = default;
};

std::unique_ptr<spdlog::formatter> MakeLineFormatter(LineStyle style);

// Whether systemd's journal reads the fd: `stream`, the value of $JOURNAL_STREAM, then names the
// fd's device and inode (systemd.exec(5)). nullptr: unset.
bool IsJournal(int fd, const char* stream);

}  // namespace resmgr
