#include "tests/conformance/case_context.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace rollcall::golden {

namespace {

nlohmann::json elements_to_json(const Tensor& tensor) {
  nlohmann::json elements = nlohmann::json::array();
  const Storage& storage = *tensor.storage();  // of a complex tensor: pairs of real numbers
  for (std::int64_t i = 0; i < storage.numel; ++i) {
    elements.push_back(element_to_json(storage.at(i), storage.dtype));
  }
  return elements;
}

nlohmann::json tensor_to_json(const Tensor& tensor) {
  if (!tensor) {
    return nullptr;
  }
  nlohmann::json json{{"shape", tensor.shape().sizes()}, {"dtype", to_string(tensor.dtype())}};
  if (tensor.is_meta()) {
    json["device"] = "meta";
  } else {
    json["data"] = elements_to_json(tensor);
  }
  return json;
}

nlohmann::json tensors_to_json(const TensorList& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const Tensor& tensor : tensors) {
    list.push_back(tensor_to_json(tensor));
  }
  return list;
}

nlohmann::json tensors_to_json(const NamedTensors& tensors) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, tensor] : tensors) {
    json[name] = tensor_to_json(tensor);
  }
  return json;
}

nlohmann::json object_to_json(const Object& object);

nlohmann::json to_json(std::monostate) { return nullptr; }
nlohmann::json to_json(const ObjectList& list) {
  nlohmann::json json = nlohmann::json::array();
  for (const Object& element : list) {
    json.push_back(object_to_json(element));
  }
  return json;
}
nlohmann::json to_json(const Object::Dict& dict) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, value] : dict) {
    json[key] = object_to_json(value);
  }
  return json;
}
template <typename Plain>
nlohmann::json to_json(const Plain& value) {
  return value;
}

nlohmann::json object_to_json(const Object& object) {
  return std::visit([](const auto& value) { return to_json(value); }, object.value());
}

nlohmann::json result_to_json(const StepResult& result) {
  nlohmann::json elements = nlohmann::json::array();
  for (const Tensor& part : result) {
    for (nlohmann::json& element : elements_to_json(part)) {
      elements.push_back(std::move(element));
    }
  }
  return elements;
}

}  // namespace

nlohmann::json element_to_json(Bits bits, Dtype dtype) {
  if (dtype == Dtype::boolean) {
    return bits != 0;
  }
  if (!is_floating(dtype)) {
    return decode_integer(bits, dtype);
  }
  double value = decode(bits, dtype);
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  return value;
}

RankNotes::RankNotes()
    : values_(std::make_unique<nlohmann::json>(nlohmann::json::object())),
      marks_(std::make_unique<nlohmann::json>(nlohmann::json::array())),
      caught_(std::make_unique<nlohmann::json>(nlohmann::json::array())) {}
RankNotes::~RankNotes() = default;
RankNotes::RankNotes(RankNotes&&) noexcept = default;

std::int64_t CaseContext::inputs() const {
  return params_.integers("inputs").at(static_cast<std::size_t>(rank_));
}

void CaseContext::put(const std::string& key, bool value) { notes_.values()[key] = value; }
void CaseContext::put(const std::string& key, std::int64_t value) { notes_.values()[key] = value; }
void CaseContext::put(const std::string& key, const std::string& value) { notes_.values()[key] = value; }
void CaseContext::put(const std::string& key, const Tensor& value) {
  notes_.values()[key] = tensor_to_json(value);
}
void CaseContext::put(const std::string& key, const Object& value) {
  notes_.values()[key] = object_to_json(value);
}
void CaseContext::put(const std::string& key, const TensorList& value) {
  notes_.values()[key] = tensors_to_json(value);
}
void CaseContext::put(const std::string& key, const std::vector<double>& value) {
  notes_.values()[key] = value;
}
void CaseContext::put_none(const std::string& key) { notes_.values()[key] = nullptr; }

void CaseContext::put(const std::string& key, const Kwargs& value) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, argument] : value) {
    std::visit([&, &name = name](const auto& held) { json[name] = held; }, argument);
  }
  notes_.values()[key] = std::move(json);
}

void CaseContext::put(const std::string& key, const Joinable::Config& value) {
  notes_.values()[key] = {value.enable, value.throw_on_early_termination, value.is_first_joinable};
}

void CaseContext::put(const std::string& key, const NamedTensors& value) {
  notes_.values()[key] = tensors_to_json(value);
}

void CaseContext::add(const std::string& key, const StepResults& value) {
  nlohmann::json list = nlohmann::json::array();
  for (const StepResult& result : value) {
    list.push_back(result_to_json(result));
  }
  notes_.values()[key].push_back(std::move(list));
}

void CaseContext::add(const std::string& key, const Tensor& value) {
  notes_.values()[key].push_back(tensor_to_json(value));
}

void CaseContext::add(const std::string& key, const TensorList& value) {
  notes_.values()[key].push_back(tensors_to_json(value));
}

void CaseContext::add(const std::string& key, const NamedTensors& value) {
  notes_.values()[key].push_back(tensors_to_json(value));
}

void CaseContext::mark(const std::string& text) {
  notes_.marks().push_back(nlohmann::json::array({log_.ops.size(), text}));
}

void CaseContext::catching(const std::string& label, const std::function<void()>& body) {
  nlohmann::json entry{{"label", label}, {"type", nullptr}, {"msg", nullptr}};
  try {
    body();
  } catch (const Error& error) {
    entry["type"] = error.type();
    entry["msg"] = error.what();
  }
  entry["at"] = log_.ops.size();
  notes_.caught().push_back(std::move(entry));
}

}  // namespace rollcall::golden
