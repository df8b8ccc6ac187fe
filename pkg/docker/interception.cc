// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/interception.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool HasName(std::string_view line, std::string_view name) {
  return EqualsIgnoreCase(line.substr(0, line.find(':')), name);
}

// Calls `on_line` for each header line, with its end; not for the empty line.
template <typename OnLine>
void ForEachLine(std::string_view head, OnLine on_line) {
  size_t begin = head.find(kLineEnd) + kLineEnd.size();
  while (begin < head.size()) {
    const size_t end = head.find(kLineEnd, begin);
    if (end == begin || end == std::string_view::npos) return;
    on_line(head.substr(begin, end + kLineEnd.size() - begin));
    begin = end + kLineEnd.size();
  }
}

bool HasField(std::string_view head, std::string_view name) {
  bool has = false;
  ForEachLine(head, [&has, name](std::string_view line) { has = has || HasName(line, name); });
  return has;
}

std::string_view HeadOf(std::string_view message) {
  constexpr std::string_view kEndOfHead = "\r\n\r\n";
  const size_t end = message.find(kEndOfHead);
  return end == std::string_view::npos ? "" : message.substr(0, end + kEndOfHead.size());
}

// The data of a complete chunked body, which BodyScanner has checked.
std::string WithoutChunks(std::string_view chunks) {
  std::string data;
  while (!chunks.empty()) {
    size_t size = 0;
    std::from_chars(chunks.data(), chunks.data() + chunks.size(), size, 16);
    const size_t line = chunks.find(kLineEnd);
    if (size == 0 || line == std::string_view::npos) break;
    chunks.remove_prefix(line + kLineEnd.size());
    data += chunks.substr(0, size);
    chunks.remove_prefix(std::min(chunks.size(), size + kLineEnd.size()));
  }
  return data;
}

}  // namespace

Status HeldExchange::AddRequest(std::string_view bytes) {
  if (head_ == 0) head_ = bytes.size();
  request_ += bytes;
  if (request_.size() <= kMaxRequest) return OkStatus();
  return ResourceExhausted("a request that creates or changes a container has more than {} bytes",
                           kMaxRequest);
}

std::string_view HeldExchange::Leave() {
  const std::string_view head = std::string_view(request_).substr(0, head_);
  if (std::exchange(leave_given_, true) || !HasField(head, "expect")) return "";
  return request_.size() > head_ ? "" : "HTTP/1.1 100 Continue\r\n\r\n";
}

void HeldExchange::Show() {
  phase_ = Phase::kDeciding;
  const std::string_view request = request_;
  if (HasField(request.substr(0, head_), "transfer-encoding")) {
    body_ = WithoutChunks(request.substr(head_));
    interception_->OnRequest(body_);
  } else {
    interception_->OnRequest(request.substr(head_));
  }
}

std::string HeldExchange::Request(const std::string* body) {
  const std::string_view request = request_;
  const std::string_view head = request.substr(0, head_);
  std::string changed(head.substr(0, head.find(kLineEnd) + kLineEnd.size()));
  ForEachLine(head, [&changed, body](std::string_view line) {
    if (HasName(line, "expect")) return;
    if (body != nullptr) {
      for (const std::string_view framing : {"content-length", "transfer-encoding", "trailer"})
        if (HasName(line, framing)) return;
    }
    changed += line;
  });
  if (body != nullptr) changed += fmt::format("Content-Length: {}\r\n", body->size());
  changed += kLineEnd;
  changed += body != nullptr ? std::string_view(*body) : request.substr(head_);
  for (std::string* const text : {&request_, &body_})
    std::string().swap(*text);  // an assignment would keep the memory
  head_ = 0;
  return changed;
}

bool HeldExchange::AddReply(std::string_view bytes) {
  reply_ += bytes;
  return reply_.size() <= kMaxReply;
}

void HeldExchange::ShowReply(int status) {
  phase_ = Phase::kReplying;
  interception_->OnReply(status, ReplyBody());
}

std::string HeldExchange::ReplyBody() const {
  std::string_view reply = reply_;
  // Skips interim replies like "100 Continue", which have no body.
  std::string_view head = HeadOf(reply);
  while (head.size() > 9 && head[9] == '1' && head.size() < reply.size()) {
    reply.remove_prefix(head.size());
    head = HeadOf(reply);
  }
  reply.remove_prefix(head.size());
  return HasField(head, "transfer-encoding") ? WithoutChunks(reply) : std::string(reply);
}

}  // namespace resmgr::docker
