# Without a configuration beside it there is nothing to say.
printf '\002\0\0\0\0\0\0\0{}' >model.safetensors
posenc inspect model.safetensors
