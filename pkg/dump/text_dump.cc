// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/text_dump.h"

#include <array>
#include <vector>

#include <absl/time/time.h>
#include <fmt/format.h>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/dump/message_tree.h"
#include "pkg/dump/yaml_text.h"

namespace resmgr::dump {

namespace {

constexpr size_t kErrorLimit = 4096;

const std::string kOtherMethods = "(other methods)";

// "2006-Jan-02 15:04:05.000" in local time: 24 columns.
std::string Stamp(std::chrono::system_clock::time_point time) {
  return absl::FormatTime("%Y-%b-%d %H:%M:%E3S", absl::FromChrono(time), absl::LocalTimeZone());
}

// "+1.234567", right-aligned in the same 24 columns.
std::string Latency(const Event& event) {
  const std::chrono::duration<double> seconds = event.at - event.start;
  return fmt::format("{:>24}", fmt::format("+{:.6f}", seconds.count()));
}

std::string_view KindOf(const Event& event) {
  return event.intercepted ? "intercepted" : "passthrough";
}

// The names that Go has for gRPC status codes, which users and their scripts know.
std::string_view CodeWord(int code) {
  static constexpr std::array<std::string_view, 17> kWords = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  const auto index = static_cast<size_t>(code);
  return code >= 0 && index < kWords.size() ? kWords.at(index) : std::string_view();
}

std::string ErrorText(const Event& event) {
  const std::string_view word = CodeWord(event.code);
  return fmt::format("rpc error: code = {} desc = {}",
                     word.empty() ? fmt::format("Code({})", event.code) : std::string(word),
                     Printable(event.message, kErrorLimit));
}

}  // namespace

void TextDump::Take(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kRequest:
      return Request(event);
    case Event::Kind::kChanged:
      return Changed(event);
    case Event::Kind::kReply:
      return Reply(event);
    case Event::Kind::kEnd:
      return End(event);
    case Event::Kind::kLost:
      return Lost(event);
    case Event::Kind::kSettings:
    case Event::Kind::kUse:
      return;
  }
}

void TextDump::Request(const Event& event) {
  if (event.plan->target == Target::kCount) Count(event);
  if (event.plan->target != Target::kFull) return;
  Body(Stamp(event.wall_start), fmt::format("({}) REQUEST {}", KindOf(event), event.plan->name),
       "=>", event, false);
}

void TextDump::Changed(const Event& event) {
  if (event.plan->target != Target::kFull || event.payload.truncated()) return;
  const google::protobuf::Message* const type = event.plan->types.request;
  Payload after(event.changed);
  after.encoding = event.payload.encoding;
  const std::vector<std::string> changes =
      Differences(ToTree(event.payload, type, show_secrets_), ToTree(after, type, show_secrets_));
  const std::string stamp = Latency(event);
  for (const std::string& change : changes) {
    Line(false, stamp, event,
         fmt::format("({}) CHANGED {}: {}", KindOf(event), event.plan->name, change));
  }
}

void TextDump::Reply(const Event& event) {
  if (event.plan->target != Target::kFull) return;
  Body(Latency(event), fmt::format("({}) REPLY {}", KindOf(event), event.plan->name), "<=", event,
       true);
}

void TextDump::End(const Event& event) {
  const Target target = event.plan->target;
  if (target != Target::kName && target != Target::kFull) return;
  const std::string stamp = Latency(event);
  if (event.code == 0) {
    if (target == Target::kName)
      Line(false, stamp, event, fmt::format("({}) REQUEST {}", KindOf(event), event.plan->name));
    return;
  }
  const bool full = target == Target::kFull;
  Line(full, stamp, event, fmt::format("({}) FAILED {}", KindOf(event), event.plan->name));
  if (full) Line(true, stamp, event, fmt::format("  {} <= {}", event.plan->name, ErrorText(event)));
}

void TextDump::Lost(const Event& event) {
  if (event.lost_calls > 0)
    Write(true, Stamp(event.wall_start),
          fmt::format("the dump fell behind: {} missing or incomplete",
                      CountIs(static_cast<int64_t>(event.lost_calls), "call")));
}

void TextDump::Count(const Event& event) {
  const bool apart = counters_.size() < kCounters || counters_.contains(event.plan->name);
  const std::string& name = apart ? event.plan->name : kOtherMethods;
  Counter& counter = counters_[name];
  if (counter.total++ == 0) {
    counter.begin = event.at;
    return;
  }
  if (event.at - counter.begin <= count_period_) return;
  const std::chrono::duration<double> period = count_period_;
  const uint64_t calls = counter.total - counter.at_begin;
  // Counts are only logged, and not written to the file.
  log_(false, fmt::format("({}) REQUEST: {} #{}, {} total, {:.2f}/s calls", KindOf(event), name,
                          counter.total, calls, static_cast<double>(calls) / period.count()));
  counter.at_begin = counter.total;
  counter.begin = event.at;
}

void TextDump::Body(std::string_view stamp, const std::string& header, std::string_view arrow,
                    const Event& event, bool size_note) {
  const MethodTypes& types = event.plan->types;
  const std::string yaml = ToYaml(
      ToTree(event.payload, event.kind == Event::Kind::kRequest ? types.request : types.reply,
             show_secrets_));
  const std::string note = size_note ? fmt::format(" ({} bytes as yaml)", yaml.size()) : "";
  const std::string_view text = std::string_view(yaml).substr(0, yaml.size() - 1);
  if (text.find('\n') == std::string_view::npos) {
    Line(false, stamp, event, fmt::format("{} {} {}", header, arrow, text), note);
    return;
  }
  Line(false, stamp, event, header, note);
  for (const std::string_view line : Split(text, '\n'))
    Line(false, stamp, event, fmt::format("    {} {} {}", event.plan->name, arrow, line));
}

void TextDump::Line(bool warning, std::string_view stamp, const Event& event, std::string_view line,
                    std::string_view file_suffix) {
  Write(warning, stamp, fmt::format("#{} {}", event.call, line), file_suffix);
}

void TextDump::Write(bool warning, std::string_view stamp, std::string_view line,
                     std::string_view file_suffix) {
  log_(warning, line);
  if (file_ == nullptr && !lines_) return;
  const std::string stamped = fmt::format("[{}] {}{}\n", stamp, line, file_suffix);
  if (file_ != nullptr) file_->Append(stamped);
  if (lines_) lines_(stamped);
}

}  // namespace resmgr::dump
