// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/byte_buffer.h"

namespace resmgr::test {

using MetadataMap = std::multimap<std::string, std::string>;

grpc::ByteBuffer ToBuffer(std::string_view bytes);

// One call as the server sees it, whatever its service and method. All of it belongs to the
// server's thread. Safe to keep after the call ended: then every reply is dropped.
class ServerCall {
 public:
  virtual ~ServerCall() = default;

  virtual const std::string& path() const = 0;
  virtual const MetadataMap& metadata() const = 0;
  // system_clock's maximum when the client set none.
  virtual std::chrono::system_clock::time_point deadline() const = 0;
  virtual bool ended() const = 0;

  // Sends headers without waiting for the first message.
  virtual void SendHeaders() = 0;
  virtual void AddHeader(const std::string& key, const std::string& value) = 0;
  virtual void AddTrailer(const std::string& key, const std::string& value) = 0;
  // Compresses the messages that follow; before the first Write.
  virtual void UseGzip() = 0;
  // Sends the message `times` times in a row.
  virtual void Write(grpc::ByteBuffer message, int times = 1) = 0;
  // The last message and the status together, in as few packets as a busy server would use.
  virtual void WriteLast(grpc::ByteBuffer message, grpc::Status status) = 0;
  // Ends the call once everything written has left.
  virtual void Finish(grpc::Status status) = 0;
};

using ServerCallPtr = std::shared_ptr<ServerCall>;

// A server's treatment of its calls; everything runs on the server's thread.
class CallHandler {
 public:
  virtual ~CallHandler() = default;

  virtual void OnCall(const ServerCallPtr& call) = 0;
  virtual void OnMessage(const ServerCallPtr& call, const grpc::ByteBuffer& message) = 0;
  // The client will send no more.
  virtual void OnHalfClosed(const ServerCallPtr& call) = 0;
  // Always the last one. `cancelled`: by the client, its deadline, or a lost connection.
  virtual void OnEnd(const ServerCallPtr& call, bool cancelled) = 0;
};

// A gRPC server for any method, by path and in bytes, on one unix socket: one thread of its own
// for the calls, one that accepts. It accepts connections itself, so that a test can cut them as a
// dying process would. Message sizes are not limited. Destroying it cuts everything at once.
class GenericServer {
 public:
  // The handler must outlive the server. A file at the path is replaced. Unavailable when the
  // socket cannot be bound.
  static StatusOr<std::unique_ptr<GenericServer>> Start(const std::string& socket_path,
                                                        CallHandler& handler);
  ~GenericServer();
  GenericServer(const GenericServer&) = delete;
  GenericServer& operator=(const GenericServer&) = delete;

  // Thread-safe: runs the task on the server's thread, soon or after the delay. Tasks that are due
  // after the server's end never run.
  void Post(std::function<void()> task);
  void After(std::chrono::milliseconds delay, std::function<void()> task);

  // Thread-safe: closes every connection that stands, as if the process had died. New ones are
  // accepted.
  void CutConnections();
  // Thread-safe: connections accepted so far.
  int accepted() const { return accepted_; }

 private:
  class Call;
  class WakeUp;
  using Clock = std::chrono::steady_clock;

  explicit GenericServer(CallHandler& handler) : handler_(handler) {}
  void AcceptLoop();
  void ServeLoop();
  bool NothingLeft();
  void RunDueTasks();
  Clock::time_point NextTask();
  void ForgetClosedConnections();

  CallHandler& handler_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  UniqueFd listener_;
  UniqueFd stop_accepting_;
  std::atomic<int> accepted_{0};

  std::mutex mutex_;
  bool stopped_ = false;  // the gRPC server refuses calls by now
  std::multimap<Clock::time_point, std::function<void()>> tasks_;
  std::vector<UniqueFd> connections_;  // duplicates, to shut them down

  std::set<std::shared_ptr<Call>> calls_;  // serving thread only
  bool requested_ = false;                 // the next call is waited for; serving thread only
  std::thread serve_thread_;
  std::thread accept_thread_;
};

}  // namespace resmgr::test
