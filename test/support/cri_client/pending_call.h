// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace resmgr::test {

using Metadata = std::multimap<std::string, std::string>;

struct CallOptions {
  Metadata metadata = {};
  // The deadline that the server is told, from now.
  std::chrono::milliseconds timeout{120'000};
  bool gzip = false;
  // Stops reading after this many messages until ResumeReading; -1 reads all.
  int pause_after = -1;
};

struct CallResult {
  grpc::Status status;
  std::vector<std::string> messages;
  Metadata headers;
  Metadata trailers;
};

// One call in bytes, running on a thread of its own. Thread-safe.
class PendingCall {
 public:
  PendingCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
              const CallOptions& options);
  // Cancels it where it still runs.
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  // Sends one message; returns when flow control took it. False when the call is over.
  bool Send(std::string_view message);
  void HalfClose();
  void Cancel() { context_.TryCancel(); }
  void ResumeReading();

  bool WaitForMessages(size_t count, std::chrono::milliseconds timeout);
  // nullopt when it still runs after the timeout.
  std::optional<CallResult> Wait(std::chrono::milliseconds timeout);

 private:
  void Run();
  // Both are called with the mutex held.
  void OnOpened(bool ok);
  void OnRead(bool ok);
  void ReadNext();
  void CollectResult();

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer incoming_;

  std::mutex mutex_;
  std::condition_variable changed_;
  CallResult result_;
  int read_limit_;
  bool open_ = false;
  bool paused_ = false;
  bool writing_ = false;
  bool write_failed_ = false;
  bool reads_over_ = false;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace resmgr::test
