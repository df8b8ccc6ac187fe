// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/transcript.h"

#include <regex>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

namespace resmgr::test {

void Transcript::Call(std::string_view method, const google::protobuf::Message& request,
                      google::protobuf::Message* response) {
  const grpc::Status status = client_.Unary(method, request, response);
  std::string body;
  if (status.ok()) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    options.always_print_primitive_fields = true;  // an amount of zero is an amount
    const auto printed = google::protobuf::util::MessageToJsonString(*response, &body, options);
    // Parsed and printed again, since maps come in any order.
    body = printed.ok() ? nlohmann::json::parse(body).dump() : printed.ToString();
  }
  lines_.push_back(
      Normalize(fmt::format("{}: {} {} {}", method, static_cast<int>(status.error_code()),
                            status.error_message(), body)));
}

std::string Transcript::Normalize(const std::string& text) {
  static const std::regex id("[0-9a-f]{64}");
  static const std::regex address("http://[^\"]*/");
  static const std::regex token("(HOST/)[^\"]+");
  static const std::regex placement("\"cpuset_(cpus|mems)\":\"[^\"]*\"");  // the part that we set
  static const std::regex amount("\"[0-9]+\"");  // 64-bit numbers, as JSON has them

  std::string result;
  auto rest = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), id), end; match != end; ++match) {
    const size_t number = ids_.try_emplace(match->str(), ids_.size()).first->second;
    result.append(rest, (*match)[0].first).append(fmt::format("#{}", number));
    rest = (*match)[0].second;
  }
  result.append(rest, text.cend());
  result = std::regex_replace(result, address, "HOST/");
  result = std::regex_replace(result, token, "$1TOKEN");
  result = std::regex_replace(result, placement, "\"cpuset\":\"\"");
  return std::regex_replace(result, amount, "\"N\"");
}

}  // namespace resmgr::test
