// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <curl/curl.h>

#include "agent/cluster_access.h"
#include "agent/credentials.h"
#include "agent/http.h"
#include "pkg/base/status.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// One request as libcurl knows it: its options, and the received part of the reply. Data from
// libcurl is kept here until it may be passed on, since libcurl's callbacks may not call libcurl.
// Thread-compatible.
class CurlCall {
 public:
  CurlCall(HttpRequest request, HttpTransport::Data data, HttpTransport::Done done);
  CurlCall(const CurlCall&) = delete;
  CurlCall& operator=(const CurlCall&) = delete;
  ~CurlCall();

  // Sets all options; sends nothing yet. kFailedPrecondition: a malformed token.
  Status Prepare(const ClusterAccess& access, const Credential& credential);
  CURL* easy() const { return easy_; }

  // The reply did not begin in time, when this fires.
  EventLoop::HandlePtr first_byte_timer{};
  std::chrono::milliseconds first_byte_timeout() const { return request_.first_byte_timeout; }

  // Called when libcurl has finished the request.
  void Finish(CURLcode code);
  void Fail(const Status& status) { result_ = status; }
  bool finished() const { return result_.has_value(); }
  bool has_news() const { return !pieces_.empty() || finished(); }

  // Takes the pieces that have not been passed on.
  std::string TakePieces() { return std::exchange(pieces_, {}); }
  StatusOr<HttpReply> TakeResult() { return *std::move(result_); }
  // A copy, so that the receiver may destroy this object.
  HttpTransport::Data data() const { return data_; }
  HttpTransport::Done done() const { return done_; }

 private:
  static size_t OnBody(char* bytes, size_t size, size_t count, void* self);
  static size_t OnHeader(char* bytes, size_t size, size_t count, void* self);
  Status PrepareHeaders(const Credential& credential);
  void PrepareTls(const ClusterAccess& access, const Credential& credential);
  std::string Url(const ClusterAccess& access);
  int HttpStatus() const;

  HttpRequest request_;
  HttpTransport::Data data_;
  HttpTransport::Done done_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string error_;  // libcurl writes into it
  std::string pieces_;
  std::string body_;
  bool too_long_ = false;
  std::optional<StatusOr<HttpReply>> result_;
};

}  // namespace resmgr::agent
