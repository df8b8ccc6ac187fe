// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::test {

// The tag that the completion queue hands back: one per kind of operation of a call.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  virtual void Complete(bool ok) = 0;
};

// The state machine of one call: one read and one write in flight at most; reading pauses while
// replies pile up, so that a slow reader slows the writer down.
class GenericServer::Call final : public ServerCall, public std::enable_shared_from_this<Call> {
 public:
  explicit Call(GenericServer& server) : server_(server) {}

  // Waits for the next call of any client; keeps itself alive until that call ended.
  void Request();

  const std::string& path() const override { return context_.method(); }
  const MetadataMap& metadata() const override { return metadata_; }
  std::chrono::system_clock::time_point deadline() const override { return deadline_; }
  bool ended() const override { return ended_; }
  void SendHeaders() override;
  void AddHeader(const std::string& key, const std::string& value) override;
  void AddTrailer(const std::string& key, const std::string& value) override;
  void UseGzip() override;
  void Write(grpc::ByteBuffer message, int times) override;
  void WriteLast(grpc::ByteBuffer message, grpc::Status status) override;
  void Finish(grpc::Status status) override;

 private:
  struct Tag final : CompletionTag {
    Tag(Call& owner, void (Call::*member)(bool)) : call(owner), handler(member) {}
    void Complete(bool ok) override { call.Completed(handler, ok); }
    Call& call;
    void (Call::*handler)(bool);
  };
  struct Outgoing {
    grpc::ByteBuffer message;
    int times = 1;
  };

  void Completed(void (Call::*handler)(bool), bool ok);
  void* Start(Tag& tag);
  void OnRequested(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnEnded(bool ok);
  void MaybeRead();
  void Pump();

  GenericServer& server_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Tag requested_{*this, &Call::OnRequested};
  Tag read_{*this, &Call::OnRead};
  Tag written_{*this, &Call::OnWritten};
  Tag finished_{*this, &Call::OnFinished};
  Tag ended_tag_{*this, &Call::OnEnded};

  std::shared_ptr<Call> self_;  // while operations are pending
  int pending_ = 0;
  MetadataMap metadata_;
  std::chrono::system_clock::time_point deadline_;
  grpc::ByteBuffer incoming_;
  std::deque<Outgoing> outgoing_;
  grpc::Status status_;
  bool reading_ = false;
  bool half_closed_ = false;
  bool writing_ = false;
  bool finish_wanted_ = false;
  bool finish_sent_ = false;
  bool ended_ = false;
};

}  // namespace resmgr::test
