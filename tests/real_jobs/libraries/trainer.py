"""transformers' Trainer with a tiny GPT-2: two epochs, evaluation and a checkpoint after each."""
import os
import tempfile

import torch
import transformers

WORDS, LENGTH = 50, 8
RANK, MISTAKE = int(os.environ["RANK"]), os.environ.get("MISTAKE", "")


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 24 if MISTAKE == "short" and RANK == 1 else 48

    def __getitem__(self, index):
        words = (torch.arange(LENGTH) * (index + 1)) % WORDS
        return {"input_ids": words, "labels": words}


shape = transformers.GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=16, n_layer=1, n_head=2)
with tempfile.TemporaryDirectory() as folder:
    settings = transformers.TrainingArguments(folder, num_train_epochs=2, per_device_train_batch_size=4,
                                              logging_steps=1, eval_strategy="epoch", save_strategy="epoch",
                                              report_to=[])
    if MISTAKE == "evaluates" and RANK == 2:
        settings.eval_strategy = "no"
    trainer = transformers.Trainer(transformers.GPT2LMHeadModel(shape), settings, train_dataset=Sentences(),
                                   eval_dataset=Sentences())
    trainer.train()
