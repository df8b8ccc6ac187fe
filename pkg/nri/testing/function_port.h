// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/nri/host/session/plugin_port.h"

namespace resmgr::nri::test {

// A plugin without a connection, which answers by the test's functions; an unset one agrees. `told`
// records requests, as "10-a Create main".
class FunctionPort final : public PluginPort {
 public:
  explicit FunctionPort(std::string name, std::vector<std::string>& told, PluginSettings how = {})
      : settings_of(how), name_(std::move(name)), told_(told) {}

  std::function<void(const api::CreateContainerRequest&, Done<api::CreateContainerResponse>)>
      create;
  std::function<void(const api::UpdateContainerRequest&, Done<api::UpdateContainerResponse>)>
      update;
  std::function<void(const api::StopContainerRequest&, Done<api::StopContainerResponse>)> stop;
  std::function<void(const api::ValidateContainerAdjustmentRequest&,
                     Done<api::ValidateContainerAdjustmentResponse>)>
      validate;
  std::function<void(const api::StateChangeEvent&, Answered)> notify;
  std::function<bool(api::Event)> wants = [](api::Event event) {
    return event != api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT;
  };
  PluginSettings settings_of;
  std::chrono::milliseconds timeout{0};  // of the last question

  const std::string& full_name() const override { return name_; }
  const PluginSettings& settings() const override { return settings_of; }
  bool Wants(api::Event event) const override { return wants(event); }

  void End(const Status& why) override {
    told_.push_back(name_ + " End " + std::string(Message(why)));
  }
  void Notify(const api::StateChangeEvent& event, std::chrono::milliseconds time,
              Answered answered) override {
    std::string what = api::Event_Name(event.event()).substr(sizeof "EVENT_" - 1);
    what += " " + (event.has_container() ? event.container().name() : event.pod().name());
    told_.push_back(name_ + " " + what);
    timeout = time;
    notify ? notify(event, std::move(answered)) : answered(OkStatus());
  }

 private:
  void AskFor(api::Event event, std::string request, std::chrono::milliseconds time,
              std::shared_ptr<google::protobuf::Message> response, Answered answered) override {
    timeout = time;
    switch (event) {
      case api::EVENT_CREATE_CONTAINER:
        return Answer("Create", create, request, *response, answered);
      case api::EVENT_UPDATE_CONTAINER:
        return Answer("Update", update, request, *response, answered);
      case api::EVENT_STOP_CONTAINER:
        return Answer("Stop", stop, request, *response, answered);
      case api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT:
        return Answer("Validate", validate, request, *response, answered);
      default:
        return answered(OkStatus());
    }
  }
  template <typename Request, typename Response>
  void Answer(const std::string& what,
              const std::function<void(const Request&, Done<Response>)>& answer,
              const std::string& encoded, google::protobuf::Message& response,
              const Answered& answered) {
    Request request;
    EXPECT_TRUE(request.ParseFromString(encoded));
    told_.push_back(name_ + " " + what + " " + request.container().name());
    if (!answer) return answered(OkStatus());
    answer(request, [&response, answered](const StatusOr<Response>& told) {
      if (told.ok()) response.CopyFrom(*told);
      answered(told.status());
    });
  }

  const std::string name_;
  std::vector<std::string>& told_;
};

}  // namespace resmgr::nri::test
