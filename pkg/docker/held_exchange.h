// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/docker/interception.h"

namespace resmgr::docker {

// The bytes of a request that is looked at, and of its reply. No I/O. Thread-compatible.
class HeldExchange {
 public:
  // A container's environment and labels are most of a request.
  static constexpr size_t kMaxRequest = size_t{4} * 1024 * 1024;
  static constexpr size_t kMaxReply = size_t{256} * 1024;

  enum class Phase : uint8_t { kCollecting, kDeciding, kForwarded, kReplying };

  explicit HeldExchange(std::unique_ptr<Interception> interception)
      : interception_(std::move(interception)) {}

  Phase phase() const { return phase_; }
  // The head, then pieces of the body. ResourceExhausted: longer than kMaxRequest.
  Status AddRequest(std::string_view bytes);
  // The client waits for leave to send the body: what it is to be told, once, else "".
  std::string_view Leave();
  // The request is complete: it is shown.
  void Show();
  // Without chunks, from Show until Request.
  std::string_view body() const {
    return body_.empty() ? std::string_view(request_).substr(head_) : body_;
  }
  // What dockerd gets: with another body, or as it came, but that it is not to give leave any more.
  std::string Request(const std::string* body);
  void OnForwarded() { phase_ = Phase::kForwarded; }
  void OnNotForwarded() { interception_->OnNotForwarded(); }

  // False: the reply is too long to be held.
  bool AddReply(std::string_view bytes);
  // The reply is complete: it is shown.
  void ShowReply(int status);
  std::string ReplyBody() const;
  std::string TakeReply() { return std::move(reply_); }
  size_t held() const { return request_.size() + body_.capacity(); }

 private:
  std::string request_;  // head and body as they came
  size_t head_ = 0;      // the size of the head
  std::string body_;     // without chunks
  std::string reply_;
  Phase phase_ = Phase::kCollecting;
  bool leave_given_ = false;
  std::unique_ptr<Interception> interception_;
};

// The data of a body of chunks, which BodyScanner has seen complete.
std::string WithoutChunks(std::string_view chunks);

}  // namespace resmgr::docker
