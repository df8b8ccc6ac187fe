// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include "pkg/nri/host/merge/adjustment_merge.h"

namespace resmgr::nri {

// Parses protobuf's text form; a malformed text fails the test.
template <typename Message>
Message Make(std::string_view text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), &message)) << text;
  return message;
}

// Matches a message that equals the text exactly.
MATCHER_P(Is, text, "is " + std::string(text)) {
  using Message = std::decay_t<decltype(arg)>;
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  const bool same = differencer.Compare(Make<Message>(text), arg);
  *result_listener << differences;
  return same;
}

// A new container from a given message.
class GivenContainer final : public PristineContainer {
 public:
  explicit GivenContainer(api::Container container, api::PodSandbox pod = {})
      : container_(std::move(container)), pod_(std::move(pod)) {}

  const api::PodSandbox& pod() const override { return pod_; }
  const std::string& id() const override { return container_.id(); }
  api::Container Make() const override { return container_; }
  api::Container MakeOutline() const override {
    api::Container outline;
    outline.set_id(container_.id());
    outline.set_name(container_.name());
    if (container_.linux().has_seccomp_profile()) {
      *outline.mutable_linux()->mutable_seccomp_profile() = container_.linux().seccomp_profile();
    }
    return outline;
  }
  std::string Question() const override {
    api::CreateContainerRequest request;
    *request.mutable_pod() = pod_;
    *request.mutable_container() = container_;
    return request.SerializeAsString();
  }

 private:
  const api::Container container_;
  const api::PodSandbox pod_;
};

inline std::shared_ptr<const PristineContainer> Given(api::Container container,
                                                      api::PodSandbox pod = {}) {
  return std::make_shared<GivenContainer>(std::move(container), std::move(pod));
}

}  // namespace resmgr::nri
