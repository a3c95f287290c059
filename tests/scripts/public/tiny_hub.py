"""tiny_hub.py EXAMPLE [ARGUMENT]...: runs an example of accelerate with a tiny model and data made here, instead of
downloads: it replaces the modules datasets and evaluate, AutoTokenizer, and the model's weights."""

import importlib.machinery
import os
import runpy
import sys
import types

import torch
import transformers

WORDS, LENGTH = 100, 8
torch.distributed.is_mpi_available = lambda: False  # accelerate prefers MPI on CPUs where torch has it


class Split(list):
    column_names = ["input_ids", "attention_mask", "token_type_ids", "labels"]


class Splits(dict):
    def map(self, *_, **__):
        return self

    def rename_column(self, *_):
        return self


def split(size):
    return Split({"input_ids": [(index + place) % WORDS for place in range(LENGTH)], "attention_mask": [1] * LENGTH,
                  "token_type_ids": [0] * LENGTH, "labels": index % 2} for index in range(size))


class Metric:
    def add_batch(self, predictions=None, references=None):
        pass

    def compute(self):
        return {"accuracy": 0.5, "f1": 0.5}


class Tokenizer:
    def __call__(self, *_, **__):
        return {}

    def pad(self, examples, **_):
        return transformers.BatchEncoding({name: torch.tensor([each[name] for each in examples]) for name in examples[0]})


def module(name, **content):
    made = types.ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    made.__version__ = "1"
    made.__dict__.update(content)
    sys.modules[name] = made


def model(*_, **__):
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16))


if __name__ == "__main__":
    module("datasets", DatasetDict=Splits,
           load_dataset=lambda *_, **__: Splits(train=split(32), validation=split(16), test=split(16)))
    module("evaluate", load=lambda *_, **__: Metric())
    transformers.AutoTokenizer.from_pretrained = staticmethod(lambda *_, **__: Tokenizer())
    transformers.AutoModelForSequenceClassification.from_pretrained = staticmethod(model)
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
