// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_output.h"

#include <array>
#include <cerrno>
#include <utility>

#include "pkg/base/count_text.h"
#include "pkg/base/parse.h"

namespace resmgr::nri {
namespace {

constexpr std::chrono::seconds kSecond{1};

}  // namespace

PluginOutput::PluginOutput(EventLoop& loop, UniqueFd pipe, std::string plugin)
    : loop_(loop),
      pipe_(std::move(pipe)),
      plugin_(std::move(plugin)),
      log_(GetLogger("nri/host")),
      limit_(50, std::chrono::seconds(10)) {
  watch_ = loop_.Watch(pipe_.get(), EventLoop::kReadable, [this](int) { Read(); });
}

const std::string& PluginOutput::LastLine() {
  constexpr int kReads = 16;
  for (int i = 0; i < kReads && watch_ != nullptr; ++i)
    Read();
  return last_line_;
}

void PluginOutput::Read() {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    EndLine();
    watch_.reset();
    return;
  }
  Take({buffer.data(), static_cast<size_t>(got)});
  read_ += static_cast<size_t>(got);
  if (second_ == nullptr) {
    second_ = loop_.After(kSecond, [this] {
      second_.reset();
      read_ = 0;
      if (watch_ != nullptr) EventLoop::SetEvents(*watch_, EventLoop::kReadable);
    });
  }
  if (read_ >= kMostBytes) EventLoop::SetEvents(*watch_, 0);
}

void PluginOutput::Take(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() < kLongestLine) line_.append(piece.substr(0, kLongestLine - line_.size()));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    EndLine();
  }
}

void PluginOutput::EndLine() {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) return;
  last_line_ = line;
  if (const auto more = limit_.Pass(loop_.Now())) {
    const std::string lost =
        *more == 0
            ? ""
            : fmt::format(" ({} lost before it)", CountText(static_cast<int64_t>(*more), "line"));
    log_.Info("plugin {} says: {}{}", plugin_, Printable(line, kLongestLine), lost);
  }
}

}  // namespace resmgr::nri
