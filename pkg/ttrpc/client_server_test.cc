// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/envelope.h"
#include "pkg/ttrpc/frame.h"
#include "pkg/ttrpc/server.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::ttrpc {
namespace {

using std::chrono::milliseconds;
using test::RunUntil;
using test::SocketPair;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kConnection = 1;

// A client and a server at the two ends of a trunk.
class ClientServerTest : public testing::Test {
 protected:
  using Response = StatusOr<std::string>;

  Client::Done Into(std::optional<Response>& response) {
    return [&response](Response told) { response = std::move(told); };
  }

  Response Call(std::string_view method, std::string_view payload,
                std::string_view service = "Test") {
    std::optional<Response> response;
    client_->Call(service, method, payload, milliseconds(5000), Into(response));
    EXPECT_FALSE(response.has_value()) << "told within Call";
    EXPECT_TRUE(RunUntil(loop_, [&] { return response.has_value(); }));
    return response.value_or(Internal("the test has waited for too long"));
  }

  Server::Methods Methods() {
    Server::Methods methods;
    methods["Echo"] = [](std::string payload, std::chrono::nanoseconds,
                         const Server::Reply& reply) { reply(std::move(payload)); };
    methods["Fail"] = [](const std::string&, std::chrono::nanoseconds, const Server::Reply& reply) {
      reply(FailedPrecondition("not now"));
    };
    methods["Hang"] = [this](const std::string&, std::chrono::nanoseconds timeout,
                             Server::Reply reply) {
      waited_ = timeout;
      held_.push_back(std::move(reply));
    };
    methods["Long"] = [](const std::string&, std::chrono::nanoseconds, const Server::Reply& reply) {
      reply(std::string(kLongestMessage, 'x'));
    };
    methods["FailAtLength"] = [](const std::string&, std::chrono::nanoseconds,
                                 const Server::Reply& reply) {
      reply(Internal("{}", std::string(kLongestMessage, 'x')));
    };
    methods["End"] = [this](const std::string&, std::chrono::nanoseconds,
                            const Server::Reply& reply) {
      server_.reset();
      reply(std::string("too late"));
    };
    return methods;
  }

  EventLoop loop_;
  SocketPair sockets_;
  MemoryBudget budget_;
  std::optional<Status> lost_;
  std::vector<Server::Reply> held_;
  std::chrono::nanoseconds waited_{0};
  Multiplexer near_{loop_, std::move(sockets_.ours), [this](const Status& why) {
                      lost_ = why;
                      client_->Lose(why);
                    }};
  std::optional<Multiplexer> far_{std::in_place, loop_, std::move(sockets_.theirs),
                                  [](const Status&) {}};
  std::unique_ptr<Client> client_ = std::make_unique<Client>(loop_, near_, kConnection, budget_);
  std::unique_ptr<Server> server_ =
      std::make_unique<Server>(loop_, *far_, kConnection, budget_, "Test", Methods());
};

TEST_F(ClientServerTest, ACallHasItsResponse) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{1} << 20, kLongestMessage - 100}) {
    const std::string payload(size, 'p');
    const Response response = Call("Echo", payload);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_TRUE(*response == payload);
  }
  EXPECT_EQ(budget_.held(), 0U);
}

TEST_F(ClientServerTest, APayloadThatIsSharedComesWholeAndIsLetGo) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{200}, size_t{3} << 20}) {
    const auto payload = Share(std::string(size, 'p'));
    std::optional<Response> first;
    std::optional<Response> second;
    client_->Call("Test", "Echo", payload, milliseconds(5000), Into(first));
    client_->Call("Test", "Echo", payload, milliseconds(5000), Into(second));
    ASSERT_TRUE(RunUntil(loop_, [&] { return first && second; }));
    EXPECT_TRUE(first->ok() && **first == *payload) << size;
    EXPECT_TRUE(second->ok() && **second == *payload) << size;
    EXPECT_EQ(payload.use_count(), 1);
  }
}

TEST_F(ClientServerTest, ASharedPayloadThatIsTooLongIsRefusedHere) {
  std::optional<Response> response;
  client_->Call("Test", "Echo", Share(std::string(kLongestMessage, 'p')), milliseconds(5000),
                Into(response));
  ASSERT_TRUE(RunUntil(loop_, [&] { return response.has_value(); }));
  EXPECT_EQ(response->status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Call("Echo", "p").ok());
}

TEST_F(ClientServerTest, WhatTheServerRefusesHasItsStatus) {
  EXPECT_EQ(Call("Fail", "").status(), FailedPrecondition("not now"));
  EXPECT_EQ(Call("None", "").status(), Unimplemented("method None"));
  EXPECT_EQ(Call("Echo", "", "Other").status(), Unimplemented("service Other"));
}

TEST_F(ClientServerTest, ResponsesFindTheirCallsInAnyOrder) {
  std::vector<std::string> told;
  for (const char* const name : {"a", "b", "c"}) {
    client_->Call("Test", "Hang", name, milliseconds(0), [&told, name](const Response& response) {
      told.push_back(name + response.value_or("?"));
    });
  }
  ASSERT_TRUE(RunUntil(loop_, [&] { return held_.size() == 3; }));
  EXPECT_EQ(waited_.count(), 0);
  held_[2](std::string("3"));
  held_[0](std::string("1"));
  held_[1](std::string("2"));
  held_[1](std::string("twice"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return told.size() == 3; }));
  EXPECT_THAT(told, ElementsAre("c3", "a1", "b2"));
}

TEST_F(ClientServerTest, ACallHasATimeByBothClocks) {
  std::optional<Response> response;
  client_->Call("Test", "Hang", "", milliseconds(20), Into(response));
  ASSERT_TRUE(RunUntil(loop_, [&] { return response.has_value(); }));
  EXPECT_EQ(response->status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(waited_, milliseconds(20));
  // The server has given the call up, too, and holds no memory for it.
  ASSERT_TRUE(RunUntil(loop_, [&] { return budget_.held() == 0; }));
  held_[0](std::string("too late"));
  EXPECT_TRUE(Call("Echo", "").ok());
}

TEST_F(ClientServerTest, ALateAnswerIsToldToThoseWhoWaitForIt) {
  std::optional<Response> response;
  client_->CallUntilAnswered("Test", "Echo", Share("now"), milliseconds(1), Into(response));
  ASSERT_TRUE(RunUntil(loop_, [&] { return response.has_value(); }));
  EXPECT_EQ(response->value_or(""), "now");
  response.reset();
  client_->CallUntilAnswered("Test", "Hang", Share(""), milliseconds(1), Into(response));
  // The server's deadline ends the call; the client has none.
  ASSERT_TRUE(RunUntil(loop_, [&] { return response.has_value(); }));
  EXPECT_EQ(response->status(), DeadlineExceeded("it was not answered in time"));
  EXPECT_TRUE(client_->fault().ok());
}

TEST_F(ClientServerTest, AMessageThatIsTooLongIsNotSent) {
  EXPECT_EQ(Call("Echo", std::string(kLongestMessage, 'x')).status().code(),
            StatusCode::kResourceExhausted);
  const Response response = Call("Long", "");
  EXPECT_EQ(response.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(response.status())), HasSubstr("the response of 4194309 bytes"));
  EXPECT_THAT(std::string(Message(Call("FailAtLength", "").status())),
              HasSubstr("is longer than 4194304"));
  EXPECT_TRUE(Call("Echo", "").ok());
}

TEST_F(ClientServerTest, RequestsThatAreNotAnsweredAreBounded) {
  std::vector<Response> refused;
  for (size_t i = 0; i < kMostRequests + 3; ++i) {
    client_->Call("Test", "Hang", "", milliseconds(0),
                  [&refused](Response response) { refused.push_back(std::move(response)); });
  }
  ASSERT_TRUE(RunUntil(loop_, [&] { return refused.size() == 3; }));
  EXPECT_EQ(refused[0].status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(client_->calls(), kMostRequests);
}

TEST_F(ClientServerTest, AMethodMayEndItsServer) {
  std::optional<Response> response;
  client_->Call("Test", "End", "", milliseconds(20), Into(response));
  ASSERT_TRUE(RunUntil(loop_, [&] { return response.has_value(); }));
  EXPECT_EQ(response->status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ClientServerTest, CallsEndWithTheConnection) {
  std::vector<StatusCode> told;
  for (int i = 0; i < 3; ++i) {
    client_->Call("Test", "Hang", "", milliseconds(0),
                  [&told](const Response& response) { told.push_back(response.status().code()); });
  }
  ASSERT_TRUE(RunUntil(loop_, [&] { return held_.size() == 3; }));
  server_.reset();
  far_.reset();
  ASSERT_TRUE(RunUntil(loop_, [&] { return told.size() == 3; }));
  EXPECT_THAT(told, testing::Each(StatusCode::kUnavailable));
  EXPECT_EQ(lost_->code(), StatusCode::kUnavailable);
}

TEST_F(ClientServerTest, DestroyedClientsForgetTheirCalls) {
  bool told = false;
  client_->Call("Test", "Hang", "", milliseconds(10), [&told](const Response&) { told = true; });
  client_->Call("Test", "Echo", "", milliseconds(10), [this](const Response&) { client_.reset(); });
  ASSERT_TRUE(RunUntil(loop_, [&] { return client_ == nullptr; }));
  resmgr::test::RunFor(loop_, milliseconds(30));
  EXPECT_FALSE(told);
}

// A test peer that sends everything that the server must refuse.
class ServerTest : public testing::Test {
 protected:
  struct Collector final : Multiplexer::Receiver {
    void OnBytes(std::string_view bytes) override {
      while (std::optional<Frame> frame = reader.Next(bytes)) {
        const StatusOr<std::string_view> response = DecodeResponse(frame->body);
        told.push_back(std::to_string(frame->header.stream) + " " +
                       (response.ok()
                            ? std::string(*response)
                            : std::to_string(static_cast<int>(response.status().code()))));
      }
    }
    MemoryBudget budget;
    FrameReader reader{budget};
    std::vector<std::string> told;
  };

  void Send(uint32_t stream, std::string body, uint8_t type = 1) {
    const auto header = Encode(FrameHeader{
        .length = static_cast<uint32_t>(body.size()), .stream = stream, .type = type, .flags = 0});
    near_.Send(kConnection, {header.data(), header.size()}, std::move(body));
  }
  static std::string Echo(std::string_view payload) {
    return Encode(Request{.service = "Test", .method = "Echo", .payload = payload, .metadata = {}});
  }

  EventLoop loop_;
  SocketPair sockets_;
  MemoryBudget budget_;
  Collector peer_;
  Multiplexer near_{loop_, std::move(sockets_.ours), [](const Status&) {}};
  Multiplexer far_{loop_, std::move(sockets_.theirs), [](const Status&) {}};
  Server server_{loop_,
                 far_,
                 kConnection,
                 budget_,
                 "Test",
                 {{"Echo", [](std::string payload, std::chrono::nanoseconds,
                              const Server::Reply& reply) { reply(std::move(payload)); }}}};
};

TEST_F(ServerTest, AnswersWhatIsNoRequest) {
  near_.Open(kConnection, peer_);
  Send(3, Echo("first"));
  Send(3, Echo("again"));  // the stream number was used before
  Send(1, Echo("backwards"));
  Send(4, Echo("even"));
  Send(0, Echo("zero"));
  Send(5, "\xff\xff");
  Send(7, Echo("data"), 3);  // not a request: skipped
  Send(9, std::string(kLongestMessage + 1, 'x'));
  Send(11, Echo("last"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return peer_.told.size() == 8; }));
  EXPECT_THAT(peer_.told,
              ElementsAre("3 first", "3 3", "1 3", "4 3", "0 3", "5 3", "9 8", "11 last"));
}

}  // namespace
}  // namespace resmgr::ttrpc
